"""Whatever is delivered in whatever order: a store holds what one log would hold."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st
from store_logs import ipc_bytes, origin
from worlds import hours

from infoset.data import EventLog
from infoset.data.store import Store

SETTINGS = settings(max_examples=15, deadline=None, derandomize=True)
STREAMS = ("bars/1d", "macro/CPI")
WEEK = 24 * 7

Key = tuple[str, str, int, int, int | None]


def key() -> st.SearchStrategy[Key]:
    """Draw a stream, an entity, an event's week, a lag in weeks, and a sequence."""
    return st.tuples(
        st.sampled_from(STREAMS),
        st.sampled_from(("A", "B", "*")),
        st.integers(0, 8),
        st.integers(0, 4),
        st.sampled_from((None, 0, 2**53 + 1)),
    )


def frame_of(keys: list[Key]) -> pd.DataFrame:
    """Return events whose values follow from their keys: nothing contradicts."""
    values = [sum(map(ord, k[1])) + 10.0 * k[2] + k[3] / 8 + (k[4] or 0) for k in keys]
    return pd.DataFrame(
        {
            "entity": pd.Series([k[1] for k in keys], dtype="str"),
            "event_time": hours([WEEK * k[2] for k in keys]),
            "available_at": hours([WEEK * (k[2] + k[3]) for k in keys]),
            "sequence": pd.array([k[4] for k in keys], dtype="Int64"),
            "value": pd.Series(values, dtype="float64"),
            "word": pd.Series([None if k[3] == 1 else k[1] * k[3] for k in keys]),
        }
    )


def log_of(keys: list[Key]) -> EventLog:
    logs = [
        EventLog.from_pandas(
            frame_of([k for k in keys if k[0] == stream]),
            stream=stream,
            values=["value", "word"],
        )
        for stream in STREAMS
    ]
    return logs[0].append(logs[1])


@SETTINGS
@given(deliveries=st.lists(st.lists(key(), max_size=12), min_size=1, max_size=5))
def test_a_store_holds_at_every_ingest_what_the_appended_logs_hold(
    deliveries: list[list[Key]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(Path(folder) / "store", create=True)
        expected: list[EventLog] = []
        for number, keys in enumerate(deliveries, start=1):
            log = log_of(keys)
            receipt = store.append(log, origin=origin(str(number)))
            assert receipt.ingest == number
            for stream in STREAMS:
                stored = receipt.stored[stream], receipt.already_stored[stream]
                assert sum(stored) == log.table(stream).num_rows
            expected.append(expected[-1].append(log) if expected else log)
        for number, log in enumerate(expected, start=1):
            kept = store.log(as_of_ingest=number)
            assert ipc_bytes(kept) == ipc_bytes(log)
        assert sum(r.num_stored for r in store.receipts) == len(expected[-1])


@SETTINGS
@given(keys=st.lists(key(), max_size=20), week=st.integers(-1, 13))
def test_a_bound_reads_what_was_available_by_then(keys: list[Key], week: int) -> None:
    time = hours([WEEK * week]).iloc[0]
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(Path(folder) / "store", create=True)
        store.append(log_of(keys[::2]), origin=origin("a"))
        store.append(log_of(keys[1::2]), origin=origin("b"))
        assert ipc_bytes(store.log(until=time)) == ipc_bytes(store.log().until(time))
