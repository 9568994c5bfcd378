"""Random event logs, full of what hurts: ties, late arrivals, revisions, both scopes."""

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from infoset.data import EventLog

START = pd.Timestamp("2024-01-01", tz="UTC")
STREAMS = ("bars/1d", "macro/CPI")
ENTITIES = ("A", "B", "*")


@st.composite
def event_frames(draw, *, max_rows=25):
    """A frame per stream: few distinct instants, so that ties are common."""
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
    """Instants some hours after the start, in UTC nanoseconds."""
    nanos = START.value + np.array(offsets, dtype=np.int64) * 3_600_000_000_000
    return pd.Series(nanos.view("datetime64[ns]")).dt.tz_localize("UTC")


def to_log(frames):
    """One log with every stream."""
    logs = [
        EventLog.from_pandas(frame, stream=stream, values=["value"])
        for stream, frame in frames.items()
    ]
    log = logs[0]
    for other in logs[1:]:
        log = log.append(other)
    return log


def all_points():
    """Every entity at every half hour of the span, and outside it."""
    times = START + pd.to_timedelta(np.arange(-1, 28) * 30, unit="min")
    index = pd.MultiIndex.from_product(
        [["A", "B"], times], names=["entity", "forecast_time"]
    )
    return index.to_frame(index=False)
