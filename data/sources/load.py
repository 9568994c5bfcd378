"""From declared sources to one event log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Int64

from infoset.data.events import EventLog

from .cells import SourceTable, number_cells, text_cells, whole_cells
from .clocks import availabilities, event_times
from .declaration import ColumnRef, SourceDeclaration
from .tabular import read_source
from .text import hashed_texts

_KEY = ["entity", "event_time", "available_at", "sequence"]
_SHOWN = 5


def event_log(declarations: Sequence[SourceDeclaration], *, base: Path) -> EventLog:
    """Read sources into one log.

    Parameters
    ----------
    declarations : sequence of SourceDeclaration
    base : Path
        Folder that relative paths start from.

    Returns
    -------
    EventLog
        Its quarantine has the further column `source` (the file), and `row` is a row of
        that file, counted from 0 after the header.

    Raises
    ------
    ValueError
        If a file, row or cell is not what its declaration says, or two sources of one
        stream declare it differently.
    TypeError
        If a column is of another kind.
    """
    log = _empty_log()
    declared: dict[str, SourceDeclaration] = {}
    for declaration in declarations:
        addition = source_log(declaration, base=base)
        for stream in addition.streams:
            first = declared.setdefault(stream, declaration)
            _require_agreement(stream, first, declaration)
        try:
            log = log.append(addition)
        except ValueError as error:
            raise ValueError(f"{declaration.name}: {error}") from error
    for declaration in declarations:
        if declaration.change is not None:
            for stream in declaration.streams(log):
                _require_agreement(stream, declared[stream], declaration)
    return log


def source_log(declaration: SourceDeclaration, *, base: Path) -> EventLog:
    """Read one source; see `event_log`."""
    table = read_source(declaration, base=base)
    streams = _streams(table, declaration)
    frame = _events(table, declaration, streams)
    if not declaration.scheduled:
        _require_known_after(table, declaration, frame)
    log = _empty_log()
    for stream, positions in streams.groupby(streams).indices.items():
        log = log.append(
            _stream_log(
                str(stream),
                frame.iloc[positions],
                table.rows[positions],
                declaration=declaration,
            )
        )
    return log


def _empty_log() -> EventLog:
    columns = {"stream": "str", "row": "int64", "column": "str", "reason": "str"}
    quarantine = pd.DataFrame(
        {
            name: pd.Series(dtype=kind)
            for name, kind in (columns | {"source": "str"}).items()
        }
    )
    return EventLog(tables={}, quarantine=quarantine)


def _streams(table: SourceTable, declaration: SourceDeclaration) -> pd.Series:
    column = declaration.stream_column
    if column is None:
        return pd.Series(declaration.stream, index=range(len(table)), dtype="str")
    cells = text_cells(table, column)
    table.require(
        cells.is_valid().to_numpy(),
        column,
        "stream must have a name",
        "Fill the cell, or leave the row out with `where`.",
    )
    names: pd.Series = cells.to_pandas()
    stream_of = {cell: declaration.stream_of(cell) for cell in names.unique()}
    return names.map(stream_of).astype("str")


def _events(
    table: SourceTable, declaration: SourceDeclaration, streams: pd.Series
) -> pd.DataFrame:
    """Return the source's rows as events, in the order of the file."""
    entity = (
        text_cells(table, declaration.entity.column).to_pandas().astype("str")
        if isinstance(declaration.entity, ColumnRef)
        else pd.Series(declaration.entity, index=range(len(table)), dtype="str")
    )
    entities, names = pd.factorize(entity)  # -1 where the entity is missing
    series = pd.factorize(streams)[0] * (len(names) + 1) + entities
    event_time = event_times(table, declaration.event_time, series=series)
    available_at = availabilities(
        table,
        declaration.available_at,
        event_time,
        event_column=declaration.event_time.column,
        series=series,
    )
    frame = pd.DataFrame(
        {"entity": entity, "event_time": event_time, "available_at": available_at}
    )
    if declaration.sequence is not None:
        frame["sequence"] = whole_cells(table, declaration.sequence, setting="sequence")
    return pd.concat([frame, _values(table, declaration)], axis=1)


def _values(table: SourceTable, declaration: SourceDeclaration) -> pd.DataFrame:
    values = pd.DataFrame(index=range(len(table)))
    for name, value in declaration.values.items():
        if value.kind == "text":
            values[name] = text_cells(table, value.column).to_pandas().astype("str")
        else:
            values[name] = number_cells(
                table, value.column, declaration.format, setting=f"values.{name}"
            )
    text = declaration.text
    if text is None:
        return values
    cells = text_cells(table, text.column)
    hashed = hashed_texts(cells.to_pylist(), text.hashing.num_features)
    if text.keep_text:
        hashed["text"] = cells.to_pandas().astype("str")
    return pd.concat([values, hashed], axis=1)


def _stream_log(
    stream: str,
    frame: pd.DataFrame,
    rows: Int64[np.ndarray, " k"],
    *,
    declaration: SourceDeclaration,
) -> EventLog:
    """Return one stream's events; its quarantine names the file and the file's rows."""
    values = [n for n in frame.columns if n not in _KEY]
    try:
        log = EventLog.from_pandas(
            frame, stream=stream, values=values, scheduled=declaration.scheduled
        )
    except ValueError as error:
        raise ValueError(
            f"{declaration.name}: {error}{_clashing_rows(frame, rows)}"
        ) from error
    quarantine = log.quarantine.assign(source=declaration.name)
    quarantine["row"] = rows[quarantine["row"].to_numpy(dtype=np.int64)]
    return replace(log, quarantine=quarantine)


def _clashing_rows(frame: pd.DataFrame, rows: Int64[np.ndarray, " k"]) -> str:
    """Return which rows of the file have one key and different values."""
    distinct = frame.assign(row=rows).drop_duplicates(list(frame.columns))
    key = [name for name in _KEY if name in frame.columns]
    clashing = distinct.loc[distinct.duplicated(key, keep=False), "row"]
    if clashing.empty:
        return ""
    return f" The rows are {_listed(clashing.to_numpy())}."


def _require_known_after(
    table: SourceTable, declaration: SourceDeclaration, frame: pd.DataFrame
) -> None:
    early = np.flatnonzero(frame["event_time"] > frame["available_at"])
    if len(early):
        first = frame.iloc[early[0]]
        raise ValueError(
            "event_time must not be after available_at; got "
            f"{first['event_time']} > {first['available_at']} in rows "
            f"{_listed(table.rows[early])} of {table.name} (column "
            f"{declaration.event_time.column!r}). Correct the clock, or declare "
            "`scheduled: true` if such events are announced before they happen."
        )


def _listed(rows: Int64[np.ndarray, " k"]) -> str:
    more = f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
    return ", ".join(map(str, rows[:_SHOWN])) + more


def _require_agreement(
    stream: str, first: SourceDeclaration, second: SourceDeclaration
) -> None:
    for setting in ("scheduled", "change"):
        one, other = getattr(first, setting), getattr(second, setting)
        if one != other:
            raise ValueError(
                f"{setting} of stream {stream!r} must be the same in all its sources; "
                f"got {one!r} from {first.name} and {other!r} from {second.name}. "
                "Declare it alike, or name another stream."
            )
