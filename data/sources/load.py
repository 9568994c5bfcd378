"""From rows of tables to an event log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pandas as pd
from jaxtyping import Int64

from infoset.data.events import EventLog

from .cells import SourceTable, number_cells, text_cells, whole_cells
from .clocks import availabilities, event_times
from .declaration import ColumnRef, FileOrder, RowDeclaration
from .row_counts import count_rows, is_counting
from .text import hashed_texts

_KEY = ["entity", "event_time", "available_at", "sequence"]
_SHOWN = 5


def logged_rows(tables: Iterable[tuple[SourceTable, RowDeclaration]]) -> EventLog:
    """Read tables of rows into one log; see `Source.log`."""
    logs = [empty_log()]
    for table, declaration in tables:
        _count(table, declaration)
        logs.append(_set_aside(table, declaration))
        logs.append(_table_log(table.without_faults(), declaration))
    # In pairs: of n files, an event is sorted again log2(n) times instead of n.
    while len(logs) > 1:
        pairs = zip(logs[::2], logs[1::2], strict=False)
        odd = logs[len(logs) // 2 * 2 :]
        logs = [one.append(other) for one, other in pairs] + odd
    return logs[0]


def _count(table: SourceTable, declaration: RowDeclaration) -> None:
    if is_counting():
        for stream, num_rows in _streams(table, declaration).value_counts().items():
            count_rows(str(stream), int(num_rows))


def _set_aside(table: SourceTable, declaration: RowDeclaration) -> EventLog:
    """Return a log without events that lists the faulty rows of a table."""
    log = empty_log()
    if not any(fault.at.any() for fault in table.faults):
        return log
    streams = _streams(table, declaration).to_numpy()
    taken = np.zeros(len(table), dtype=bool)
    found: list[pd.DataFrame] = []
    for fault in table.faults:
        at = np.flatnonzero(fault.at & ~taken)
        taken[at] = True
        listed = {"stream": streams[at], "row": table.rows[at], "column": fault.column}
        found.append(
            pd.DataFrame(listed | {"reason": fault.reason, "source": table.name})
        )
    return replace(log, quarantine=pd.concat(found, ignore_index=True))


def _table_log(table: SourceTable, declaration: RowDeclaration) -> EventLog:
    streams = _streams(table, declaration)
    frame = _events(table, declaration, streams)
    if not declaration.scheduled:
        _require_known_after(table, declaration, frame)
    log = empty_log()
    for stream, positions in streams.groupby(streams).indices.items():
        rows = np.asarray(positions, dtype=np.int64)
        log = log.append(
            _stream_log(
                str(stream),
                frame.iloc[rows],
                table,
                rows,
                scheduled=declaration.scheduled,
            )
        )
    return log


def empty_log() -> EventLog:
    """Return a log without streams, whose quarantine names sources."""
    columns = {"stream": "str", "row": "int64", "column": "str", "reason": "str"}
    quarantine = pd.DataFrame(
        {
            name: pd.Series(dtype=kind)
            for name, kind in (columns | {"source": "str"}).items()
        }
    )
    return EventLog(tables={}, quarantine=quarantine)


def _streams(table: SourceTable, declaration: RowDeclaration) -> pd.Series:
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
    table: SourceTable, declaration: RowDeclaration, streams: pd.Series
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
    if isinstance(declaration.sequence, FileOrder):
        frame["sequence"] = table.rows + 1
    elif declaration.sequence is not None:
        frame["sequence"] = whole_cells(table, declaration.sequence, setting="sequence")
    return pd.concat([frame, _values(table, declaration)], axis=1)


def _values(table: SourceTable, declaration: RowDeclaration) -> pd.DataFrame:
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
    if text.hashing is None:  # an encoder reads it later: see `encoded_streams`
        return values.assign(text=cells.to_pandas().astype("str"))
    hashed = hashed_texts(cells.to_pylist(), text.hashing.num_features)
    if text.keep_text:
        hashed["text"] = cells.to_pandas().astype("str")
    return pd.concat([values, hashed], axis=1)


def _stream_log(
    stream: str,
    frame: pd.DataFrame,
    table: SourceTable,
    positions: Int64[np.ndarray, " k"],
    *,
    scheduled: bool,
) -> EventLog:
    """Return one stream's events; its quarantine names the file and the file's rows."""
    values, rows = [n for n in frame.columns if n not in _KEY], table.rows[positions]
    try:
        log = EventLog.from_pandas(
            frame, stream=stream, values=values, scheduled=scheduled
        )
    except ValueError as error:
        raise ValueError(
            f"{table.name}: {error}{_clashing_rows(frame, rows)}"
        ) from error
    quarantine = log.quarantine.assign(source=table.name)
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
    table: SourceTable, declaration: RowDeclaration, frame: pd.DataFrame
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
    rows = np.unique(rows)  # a wide row gives several events
    more = f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
    return ", ".join(map(str, rows[:_SHOWN])) + more
