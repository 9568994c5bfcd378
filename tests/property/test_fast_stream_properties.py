"""Compiled streams and torch's agree on tapes that hypothesis draws."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_streams import DAY, START, WIDTH, carried, difference, random_forecaster

from infoset.data import History
from infoset.models.event_window import StreamEvent
from infoset.models.settings import NetworkSize

pytestmark = pytest.mark.slow
SETTINGS = settings(max_examples=20, deadline=None, derandomize=True)
AGREEMENT = 1e-5  # in units of the scale
HISTORIES = [History(), History(since="month")]


@cache
def forecaster(name):
    size = NetworkSize(width=8, num_layers=1, num_heads=2)
    if name == "softmax":
        return random_forecaster("softmax", size=size)
    return random_forecaster(feature_map=name, size=size)


@st.composite
def tapes(draw):
    """Draw events in order: ties, long silences, gaps in the values, tails."""
    values = st.one_of(st.just(np.nan), st.floats(-1e6, 1e6, width=32))
    rows = draw(
        st.lists(
            st.tuples(
                st.sampled_from([0, 1, DAY // 9, 20 * DAY, 5000 * DAY]),
                st.integers(0, 1),
                st.booleans(),
                st.integers(-30, 300),
                st.integers(0, 4),
                st.lists(values, min_size=WIDTH, max_size=WIDTH),
            ),
            min_size=1,
            max_size=12,
        )
    )
    events, instant = [], START
    for wait, stream, own, lag, revision, of_event in rows:
        instant += wait
        events.append(
            StreamEvent(
                stream=stream,
                own=own,
                event_time=instant - lag * DAY,
                available_at=instant,
                revision=revision,
                values=np.array(of_event),
            )
        )
    return events


@pytest.mark.parametrize("name", ["elu1", "relu", "favor", "hedgehog", "softmax"])
@SETTINGS
@given(
    events=tapes(),
    history=st.sampled_from(HISTORIES),
    wait=st.integers(0, 40),
    split=st.integers(0, 12),
)
def test_any_tape_gives_the_same_forecasts(name, events, history, wait, split):
    fast, torch_ = (
        carried(forecaster(name), history=history, backend=backend)
        for backend in ("numba", "torch")
    )
    for row, event in enumerate(events):
        if row == split:
            fast.state, torch_.state = torch_.state, fast.state
        fast.update(event)
        torch_.update(event)
    at = events[-1].available_at
    assert difference(torch_, fast, at + wait * DAY) <= AGREEMENT
    fork = fast.fork()
    fork.update(events[-1])
    assert difference(torch_, fast, at + wait * DAY) <= AGREEMENT
