"""Answers of the FRED API: series/observations as JSON, of every output type.

Output types 1 and 4 list observations with the real-time period in which they were
valid; 2 and 3 have a key per vintage, SERIES_YYYYMMDD. The end of a real-time period
tells when a value was revised: that is the future, so it is checked and never a value.
It may be 9999-12-31, the open end, which no nanosecond clock can hold.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from jaxtyping import Int64

from infoset.data.sources.cells import SourceTable, matches
from infoset.data.sources.delimited import file_content

from .alfred_wide import column_vintages
from .vintage_cells import number_columns, without_markers
from .vintages import Vintage

_LISTED = ("realtime_start", "realtime_end", "date", "value")
_DATE = r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$"
_CHANGES_ONLY = 3


@dataclass(frozen=True, eq=False)
class Answer:
    """One answer of the API.

    Attributes
    ----------
    table : SourceTable
        Its observations as text, null where a value is missing; the rows are places in
        the array.
    output_type, count, offset : int
        What it says of itself: how many observations the whole answer has, and how many
        pages before this one hold.
    """

    table: SourceTable
    output_type: int
    count: int
    offset: int

    @property
    def is_listed(self) -> bool:
        """Whether it lists real-time periods, and so does not name its series."""
        return "value" in self.table.columns.column_names


def read_answer(path: Path, name: str) -> Answer:
    """Read an answer of the API (.json, also .gz).

    Raises
    ------
    ValueError
        If it is no such answer, or holds no observation.
    """
    try:
        content = json.loads(file_content(path, name))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{name} must be JSON; got {error}. Download it again with file_type=json."
        ) from error
    given = content if isinstance(content, Mapping) else {}
    observations = given.get("observations")
    if not isinstance(observations, list) or not _have_dates(observations):
        message = given.get("error_message", "others or none")
        raise ValueError(
            f"{name} must hold observations of the FRED API, each with its date; got "
            f"{message}. Download series/observations again."
        )
    frame = pd.DataFrame.from_records(observations)
    cells = {column: _texts(frame[column]) for column in frame.columns}
    rows = np.arange(len(frame), dtype=np.int64)
    return Answer(
        table=without_markers(SourceTable(name, pa.table(cells), rows)),
        output_type=_whole(given, "output_type", 1),
        count=_whole(given, "count", len(frame)),
        offset=_whole(given, "offset", 0),
    )


def _have_dates(observations: list[Any]) -> bool:
    return bool(observations) and all(
        isinstance(one, dict) and "date" in one for one in observations
    )


def require_whole(answers: list[Answer]) -> None:
    """Refuse answers that list observations of which pages are not there.

    Raises
    ------
    ValueError
        With the number of observations that are missing.
    """
    listed = [answer for answer in answers if answer.is_listed]
    for count in {answer.count for answer in listed}:
        pages = [answer for answer in listed if answer.count == count]
        found = sum(len(answer.table) for answer in pages)
        if found < count:
            raise ValueError(
                f"{pages[0].table.name} must come with all its observations; got "
                f"{found:,} of {count:,}. Download the other pages (`offset`), and give "
                "`path` a pattern that matches all."
            )


def answer_vintages(answer: Answer, series: str) -> list[Vintage]:
    """Return the vintages of an answer, oldest first.

    Parameters
    ----------
    answer : Answer
    series : str
        Name of the series of an answer that lists real-time periods.

    Raises
    ------
    ValueError
        For an entry that is not as the API writes it.
    """
    if not answer.is_listed:
        is_complete = answer.output_type != _CHANGES_ONLY
        return column_vintages(_wide(answer.table), "date", is_complete=is_complete)
    table = answer.table
    missing = [name for name in _LISTED if name not in table.columns.column_names]
    if missing:
        raise ValueError(
            f"every observation of {table.name} must have {', '.join(_LISTED)}; got no "
            f"{missing[0]}. Download series/observations again."
        )
    start, end, day = (_days(table, name) for name in _LISTED[:3])
    table.require(
        start <= end,
        "realtime_end",
        "realtime_end must not be before realtime_start",
        "Download the file again.",
    )
    value = number_columns(table, ["value"])[:, 0]
    cells = pd.DataFrame(
        {"known": start, "end": end, "day": day, "value": value, "row": table.rows}
    )
    cells = pd.concat([cells, _ended(cells)]).sort_values(["known", "day"])
    return [
        Vintage(
            file=table.name,
            date_column="date",
            known=_iso(one["known"].to_numpy()),
            days=one["day"].to_numpy(),
            series=(series,),
            values=one[["value"]].to_numpy(),
            rows=one["row"].to_numpy(),
            is_complete=False,
        )
        for _, one in cells.groupby("known")
    ]


def _wide(table: SourceTable) -> SourceTable:
    """Return the dates and the vintages of a table alone."""
    others = [name for name in _LISTED[:2] if name in table.columns.column_names]
    return SourceTable(table.name, table.columns.drop_columns(others), table.rows)


def _ended(cells: pd.DataFrame) -> pd.DataFrame:
    """Return a missing value where a real-time period ends and none follows."""
    ordered = cells.sort_values(["day", "known"])
    following = ordered.groupby("day")["known"].shift(-1)
    is_open = ordered["end"] == ordered["end"].max()
    gone = ordered[~is_open & (following != ordered["end"] + 1)]
    ended: pd.DataFrame = gone.assign(known=gone["end"] + 1, value=np.nan)
    return ended


def _iso(days: Int64[np.ndarray, " t"]) -> str:
    return str(days.astype("datetime64[D]")[0])


def _days(table: SourceTable, column: str) -> Int64[np.ndarray, " t"]:
    """Return dates in days since 1970: nanoseconds do not reach 9999-12-31."""
    cells = table.cells(column)
    rule, remedy = f"{column} must be a date such as 2008-03-07", "Download it again."
    table.require(
        matches(cells, _DATE) & cells.is_valid().to_numpy(), column, rule, remedy
    )
    days: np.ndarray = cells.to_numpy().astype("datetime64[D]").astype(np.int64)
    return days


def _texts(column: pd.Series) -> pa.Array:
    """Return JSON strings and numbers as text, null where a key is missing."""
    texts = [None if _is_missing(cell) else str(cell) for cell in column.tolist()]
    return pa.array(texts, pa.string())


def _is_missing(cell: object) -> bool:
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def _whole(given: Mapping[str, Any], key: str, default: int) -> int:
    value = given.get(key, default)
    return value if isinstance(value, int) else default
