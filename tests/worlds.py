"""Event logs for tests, full of what hurts: ties, late arrivals, revisions."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from infoset.data import (
    Change,
    EventLog,
    Target,
    prepare_samples,
    with_change,
    with_targets,
)

START = pd.Timestamp("2024-01-01", tz="UTC")
STREAMS = ("bars/1d", "macro/CPI")
ENTITIES = ("A", "B", "*")


@st.composite
def event_frames(draw, *, max_rows=25):
    """Draw a frame per stream: few distinct instants, so that ties are common."""
    frames = {}
    for stream in STREAMS:
        rows = draw(
            st.lists(
                st.tuples(
                    st.sampled_from(ENTITIES),
                    st.integers(0, 6),
                    st.integers(0, 6),
                    st.floats(-5, 5, width=32),
                ),
                max_size=max_rows,
            )
        )
        frames[stream] = pd.DataFrame(
            {
                "entity": pd.Series([r[0] for r in rows], dtype="str"),
                "event_time": hours([r[1] for r in rows]),
                "available_at": hours([r[1] + r[2] for r in rows]),
                "sequence": pd.array(range(len(rows)), dtype="Int64"),
                "value": pd.Series([r[3] for r in rows], dtype="float64"),
            }
        )
    return frames


def hours(offsets):
    """Return instants some hours after the start, in UTC nanoseconds."""
    nanos = START.value + np.array(offsets, dtype=np.int64) * 3_600_000_000_000
    return pd.Series(nanos.view("datetime64[ns]")).dt.tz_localize("UTC")


def to_log(frames):
    """Return one log with every stream."""
    logs = [
        EventLog.from_pandas(frame, stream=stream, values=["value"])
        for stream, frame in frames.items()
    ]
    log = logs[0]
    for other in logs[1:]:
        log = log.append(other)
    return log


def all_points():
    """Return every entity at every half hour of the span, and outside it."""
    times = START + pd.to_timedelta(np.arange(-1, 28) * 30, unit="min")
    index = pd.MultiIndex.from_product(
        [["A", "B"], times], names=["entity", "forecast_time"]
    )
    return index.to_frame(index=False)


@dataclass(frozen=True)
class SampleWorld:
    """Two entities with daily closes known the next noon, and monthly macro prints."""

    log: EventLog
    points: pd.DataFrame
    targets: tuple[Target, ...]

    def samples(self, history):
        """Return the samples of all points."""
        return prepare_samples(self.log, self.points, self.targets, history=history)


def sample_world(*, num_days=120, volatility=1.0, seed=0):
    """Make a small log with late arrivals, revisions and market-wide events."""
    rng = np.random.default_rng(seed)
    logs = []
    for entity in ("A", "B"):
        moves = volatility * rng.standard_t(5, num_days)
        days = hours(24 * np.arange(num_days) + 21)
        frame = pd.DataFrame(
            {
                "entity": entity,
                "event_time": days,
                "available_at": days + pd.Timedelta("15h"),
                "value": 100 + np.cumsum(moves),
            }
        )
        logs.append(EventLog.from_pandas(frame, stream="bars/1d", values=["value"]))
    macro = _macro_prints(num_days, rng)
    logs.append(EventLog.from_pandas(macro, stream="macro/CPI", values=["value"]))
    log = logs[0].append(logs[1]).append(logs[2])
    log = with_change(log, "bars/1d", Change(column="value", kind="difference"))
    targets = (Target(entities=("A", "B"), stream="bars/1d", unit="points"),)
    times = hours(24 * np.arange(1, num_days - 1) + 22)
    points = pd.MultiIndex.from_product(
        [times, ["A", "B"]], names=["forecast_time", "entity"]
    ).to_frame(index=False)
    return SampleWorld(log, with_targets(log, points, targets), targets)


def _macro_prints(num_days, rng):
    periods = np.arange(0, num_days - 20, 10)
    first = pd.DataFrame(
        {
            "entity": "*",
            "event_time": hours(24 * periods),
            "available_at": hours(24 * (periods + 3) + 13),
            "value": rng.normal(size=len(periods)),
        }
    )
    revised = first.iloc[::2].assign(
        available_at=first["available_at"].iloc[::2] + pd.Timedelta("11D"),
        value=first["value"].iloc[::2] + 0.1,
    )
    return pd.concat([first, revised], ignore_index=True)
