"""Malformed inputs: what a test expects of one, and how it is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from infoset.data import EventLog
from infoset.data.sources import TabularSource, event_log

HEAD = "id,t,v\n"
TEN = "2024-01-02T10:00:00Z"
Content = str | bytes | None  # None: a folder
Row = tuple[str, str, float | str]


class Refused:
    """The error says all of these, in this order."""

    def __init__(self, *words: str, error: type[Exception] = ValueError) -> None:
        self.match = "(?s)" + ".*".join(map(re.escape, words))
        self.error = error


@dataclass(frozen=True)
class Accepted:
    """The log holds these rows (entity, event time, value), and lists the others."""

    rows: Sequence[Row]
    set_aside: tuple[tuple[int, str, str], ...] = ()
    num_duplicates: int = 0


Case = tuple[Content | Callable[[], bytes], dict[str, Any], Refused | Accepted]


def declared(**changes: Any) -> TabularSource:
    plain = {
        "path": "f.csv",
        "stream": "s",
        "entity": {"column": "id"},
        "event_time": {"column": "t", "stamp": "instant"},
        "available_at": {"lag": "0s"},
        "values": {"v": "v"},
    }
    return TabularSource.model_validate(plain | changes)


def rows_of(log: EventLog, value: str) -> list[Row]:
    frame = log.to_pandas("s") if log.streams else pd.DataFrame()
    return [
        (row["entity"], f"{row['event_time']:%Y-%m-%dT%H:%M:%SZ}", row[value])
        for _, row in frame.iterrows()
    ]


def check(
    read: Callable[[], EventLog], outcome: Refused | Accepted, value: str
) -> None:
    if isinstance(outcome, Refused):
        with pytest.raises(outcome.error, match=outcome.match):
            read()
        return
    log = read()
    assert rows_of(log, value) == list(outcome.rows)
    listed = log.quarantine[["row", "column", "reason"]].to_numpy().tolist()
    assert [tuple(row) for row in listed] == list(outcome.set_aside)
    assert log.num_duplicates == outcome.num_duplicates


def line(v: str = "1.5", *, id: str = "A", t: str = TEN) -> str:  # noqa: A002
    return f"{HEAD}{id},{t},{v}\n"


def a(value: float | str, time: str = TEN, entity: str = "A") -> Accepted:
    return Accepted([(entity, time, value)])


def lines(*rows: str, end: str = "\n") -> str:
    return end.join(["id,t,v", *rows, ""])


def not_numeric(cell: str) -> Refused:
    return Refused(
        f"values.v must be numeric; got {cell!r} in row 0 of f.csv (column 'v'). ",
        "Leave a missing cell empty; or declare `format.decimal`",
    )


def date(**more: str) -> dict[str, Any]:
    stamp = {"column": "t", "stamp": "date", "at": "16:00", "zone": "UTC"}
    return {"event_time": stamp | more}


TWO = [("A", TEN, 1.0), ("B", TEN, 2.0)]
ROWS = (f"A,{TEN},1", f"B,{TEN},2")
TEXT = {"values": {"v": {"column": "v", "kind": "text"}}}


def check_file(folder: Path, case: Case) -> None:
    """Write the file of a case, and hold what is read against what is expected."""
    given, changes, outcome = case
    content = given() if callable(given) else given
    path = folder / changes.get("path", "f.csv")
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    check(lambda: event_log([declared(**changes)], base=folder), outcome, "v")
