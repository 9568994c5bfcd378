"""A batch of streams is its single streams, tick by tick."""

from dataclasses import replace

import numpy as np
import pytest
from random_streams import DAY, ENTITIES, START, carried, random_forecaster, tape

from infoset.data import History
from infoset.data.errors import LookAheadError
from infoset.models.fast import StreamBatch, TickEvents, packed_weights
from infoset.models.settings import NetworkSize

pytestmark = pytest.mark.slow
AGREEMENT = 1e-5  # in units of the scale; rows are multiplied two at a time
MONTH = History(since="month")
MANY = 150  # rows: more than one block, more than one thread, and a rest


def crowd(number, *, history=None, num_threads=2, forecaster=None):
    """Return a batch of many entities that are A, B and C in turn, by other names."""
    forecaster = forecaster or random_forecaster()
    about = forecaster.fitted_on()
    numbers = [place % len(ENTITIES) for place in range(number)]
    return StreamBatch(
        packed_weights(forecaster._trained()),
        forecaster.levels,
        entities=[f"e{place}" for place in range(number)],
        numbers=numbers,
        scales=[about.scales[n] for n in numbers],
        width=about.width,
        history=history or History(),
        num_threads=num_threads,
    )


def ticks(number, length, *, seed=0):
    """Yield events of `length` ticks: each entity has a tape of its own."""
    tapes = [list(tape(length, seed=seed + place)) for place in range(number)]
    yield from zip(*tapes, strict=True)


@pytest.mark.parametrize("feature_map", ["elu1", "favor"])
@pytest.mark.parametrize("history", [History(), MONTH], ids=str)
def test_each_entity_of_a_batch_forecasts_as_its_own_stream(feature_map, history):
    forecaster = random_forecaster(feature_map=feature_map, history=history)
    batch = forecaster.stream_batch(ENTITIES)
    streams = [forecaster.stream(entity) for entity in ENTITIES]
    late = 0
    for events in ticks(len(ENTITIES), 80):
        batch.update(ENTITIES, TickEvents.of(events))
        for stream, event in zip(streams, events, strict=True):
            stream.update(event)
        late = max(event.available_at for event in events)
    for at in (late, late + 40 * DAY):
        together = batch.forecast(at).quantiles
        for row, stream in enumerate(streams):
            alone = stream.forecast(at).quantiles[0]
            scale = np.abs(alone).max()
            np.testing.assert_allclose(together[row], alone, rtol=0, atol=1e-5 * scale)


def test_who_else_is_there_and_in_which_order_changes_nothing():
    rng = np.random.default_rng(0)
    crowd_of = [crowd(MANY, num_threads=threads) for threads in (1, 2, 3)]
    late = START
    for events in ticks(MANY, 6):
        late = max(late, *(event.available_at for event in events))
        for batch in crowd_of:
            order = rng.permutation(MANY)
            half = rng.integers(1, MANY)
            for part in (order[:half], order[half:]):
                names = [batch.entities[place] for place in part]
                batch.update(names, TickEvents.of([events[place] for place in part]))
    forecasts = [batch.forecast(late).quantiles for batch in crowd_of]
    scale = np.abs(forecasts[0]).max(axis=1, keepdims=True)
    for other in forecasts[1:]:
        np.testing.assert_allclose(other / scale, forecasts[0] / scale, atol=AGREEMENT)


def test_an_entity_without_events_forecasts_from_nothing():
    batch = crowd(MANY)
    event = next(tape(1))
    batch.update(["e7"], TickEvents.of([event]))
    quantiles = batch.forecast(event.available_at).quantiles
    untouched = crowd(MANY).forecast(event.available_at).quantiles
    changed = np.flatnonzero((quantiles != untouched).any(axis=1))
    assert changed.tolist() == [7]


def test_late_events_are_refused_by_name_and_nothing_is_applied():
    batch = crowd(4)
    first = [next(tape(1, seed=s)) for s in range(4)]
    now = [replace(event, available_at=START + DAY) for event in first]
    batch.update(batch.entities, TickEvents.of(now))
    before = batch.forecast(START + 2 * DAY).quantiles
    next_ = [replace(event, available_at=START + 2 * DAY) for event in first]
    next_[2] = replace(next_[2], available_at=START)
    with pytest.raises(
        ValueError,
        match=rf"order of availability; got available_at {START} ns after .*'e2'\)",
    ):
        batch.update(batch.entities, TickEvents.of(next_))
    np.testing.assert_array_equal(batch.forecast(START + 2 * DAY).quantiles, before)
    with pytest.raises(LookAheadError, match=r"must not be made before .*'e0'\)"):
        batch.forecast(START)


def test_an_unknown_entity_and_one_named_twice_are_refused():
    batch, event = crowd(3), next(tape(1))
    with pytest.raises(ValueError, match="among those of the batch; got 'Z'"):
        batch.update(["Z"], TickEvents.of([event]))
    with pytest.raises(ValueError, match="at most one event in an update; got 'e1' 2"):
        batch.update(["e1", "e0", "e1"], TickEvents.of([event] * 3))


def test_columns_that_do_not_fit_are_refused():
    batch, event = crowd(3), next(tape(1))
    events = TickEvents.of([event] * 2)
    with pytest.raises(ValueError, match="must have 3 rows, one for each entity"):
        batch.update(batch.entities, events)
    narrow = replace(events, values=events.values[:, :2])
    with pytest.raises(ValueError, match=r"and 3 values; got .* of shape \(2, 2\)"):
        batch.update(["e0", "e1"], narrow)
    unknown = replace(events, stream=np.array([1, 2]))
    with pytest.raises(ValueError, match="a code from 0 to 1; got 2 in row 1"):
        batch.update(["e0", "e1"], unknown)


def test_states_of_a_batch_and_of_a_stream_are_the_same_values():
    forecaster = random_forecaster(feature_map="favor")
    batch, stream = forecaster.stream_batch(ENTITIES), carried(forecaster, "B")
    events = list(tape(60))
    for event in events[:30]:
        stream.update(event)
    batch.put_state("B", stream.state)
    for event in events[30:]:
        batch.update(["B"], TickEvents.of([event]))
        stream.update(event)
    at = events[-1].available_at
    assert largest_difference_of_b(batch, stream, at) <= AGREEMENT
    stream.state = batch.state("B")
    assert largest_difference_of_b(batch, stream, at) <= AGREEMENT
    assert batch.state_bytes == 3 * stream.state_bytes


def largest_difference_of_b(batch, stream, at):
    together, alone = batch.forecast(at).quantiles[1], stream.forecast(at).quantiles[0]
    return float(np.abs(together - alone).max() / np.abs(alone).max())


def test_an_update_without_events_does_nothing():
    batch = crowd(3)
    before = batch.forecast(START).quantiles
    none = TickEvents.of([next(tape(1))])
    nothing = TickEvents(**{n: getattr(none, n)[:0] for n in none.__annotations__})
    batch.update([], nothing)
    np.testing.assert_array_equal(batch.forecast(START).quantiles, before)


def test_what_cannot_be_batched_is_refused_by_name():
    with pytest.raises(ValueError, match=r"got softmax attention\. Use `stream`"):
        random_forecaster("softmax").stream_batch(ENTITIES)
    with pytest.raises(ValueError, match=r"got history last 5\. Use `stream`"):
        random_forecaster().stream_batch(ENTITIES, history=History(last=5))
    narrow = random_forecaster(size=NetworkSize(width=12, num_heads=2))
    with pytest.raises(ValueError, match=r"got width 12\. Use `stream`"):
        narrow.stream_batch(ENTITIES)
    with pytest.raises(ValueError, match="entity must be one of A, B, C; got 'Z'"):
        random_forecaster().stream_batch(["A", "Z"])
