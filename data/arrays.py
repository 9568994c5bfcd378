"""The event log as flat arrays, in one canonical order: what slices point into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from jaxtyping import Float64, Int16, Int32, Int64, UInt64

from .events import EventLog
from .fingerprints import (
    event_digests,
    float_words,
    prefix_sums,
    subtracted,
    text_words,
)
from .instants import nanoseconds
from .revisions import KEY_COLUMNS

NO_SEQUENCE = int(np.iinfo(np.int64).min)


@dataclass(frozen=True, eq=False)
class EventArrays:
    """All events of a log, ordered by (entity, available_at, stream, event_time, sequence).

    Attributes
    ----------
    entities, streams : tuple of str
        What the codes stand for, sorted.
    channels : tuple of (str, str)
        (stream, numeric value column): the places of a value, over all streams.
    levels : frozenset of (str, str)
        Channels that wander; see `EventLog`.
    entity, stream : ndarray of shape (n,)
        Codes.
    event_time, available_at : ndarray of shape (n,)
        UTC nanoseconds since 1970.
    sequence : ndarray of shape (n,)
        `NO_SEQUENCE` where there is none.
    revision : ndarray of shape (n,)
    values : ndarray of shape (n, w)
        The numeric values of an event in the order of its stream's channels, NaN where
        missing; w is the largest number of channels of a stream.
    sums : ndarray of shape (n + 1, 2)
        Running sums of the events' digests, see `fingerprints`; text values are part
        of a digest.
    """

    entities: tuple[str, ...]
    streams: tuple[str, ...]
    channels: tuple[tuple[str, str], ...]
    levels: frozenset[tuple[str, str]]
    entity: Int32[np.ndarray, " n"]
    stream: Int16[np.ndarray, " n"]
    event_time: Int64[np.ndarray, " n"]
    available_at: Int64[np.ndarray, " n"]
    sequence: Int64[np.ndarray, " n"]
    revision: Int32[np.ndarray, " n"]
    values: Float64[np.ndarray, "n w"]
    sums: UInt64[np.ndarray, "m 2"]

    def __len__(self) -> int:
        return len(self.entity)

    @property
    def digests(self) -> UInt64[np.ndarray, "n 2"]:
        """The digest of each event."""
        return subtracted(self.sums[1:], self.sums[:-1])

    def block(self, entity: str) -> slice:
        """Return where the events of an entity (or `*`) are; empty if it has none."""
        code = self.entity_code(entity)
        if code < 0:
            return slice(0, 0)
        return slice(int(self.offsets[code]), int(self.offsets[code + 1]))

    @cached_property
    def offsets(self) -> Int64[np.ndarray, " e"]:
        """Where each entity's events begin, and where the last one's end."""
        codes = np.arange(len(self.entities) + 1, dtype=np.int32)
        return np.searchsorted(self.entity, codes)

    @cached_property
    def _codes(self) -> Mapping[str, int]:
        return {entity: code for code, entity in enumerate(self.entities)}

    @cached_property
    def channel_offset(self) -> Int64[np.ndarray, " s"]:
        """First channel of each stream."""
        owners = [stream for stream, _ in self.channels]
        return np.array(
            [np.searchsorted(owners, stream) for stream in self.streams],
            dtype=np.int64,
        )

    @cached_property
    def num_values(self) -> Int64[np.ndarray, " s"]:
        """Number of channels of each stream."""
        ends = np.append(self.channel_offset[1:], len(self.channels))
        counts: np.ndarray = ends - self.channel_offset
        return counts

    def entity_code(self, entity: str) -> int:
        """Return the code of an entity; -1 if no event mentions it."""
        return self._codes.get(entity, -1)

    def in_timeline_order(
        self, rows: Int64[np.ndarray, " k"]
    ) -> Int64[np.ndarray, " k"]:
        """Return rows by (available_at, stream, event_time, sequence).

        At a full tie they keep their order: give the market's before an entity's own.
        """
        keys = (self.sequence, self.event_time, self.stream, self.available_at)
        return rows[np.lexsort([key[rows] for key in keys])]

    def stream_code(self, stream: str) -> int:
        """Return the code of a stream.

        Raises
        ------
        ValueError
            If the log does not declare it.
        """
        if stream not in self.streams:
            raise ValueError(
                f"stream must be one of {', '.join(self.streams)}; got {stream!r}."
            )
        return self.streams.index(stream)

    def value_index(self, stream: str, column: str) -> int:
        """Return where `values` holds a column of a stream.

        Raises
        ------
        ValueError
            If the stream has no such numeric column.
        """
        names = [name for owner, name in self.channels if owner == stream]
        if column not in names:
            raise ValueError(
                f"column must be a numeric value of stream {stream!r} "
                f"({', '.join(names)}); got {column!r}."
            )
        return names.index(column)


def event_arrays(log: EventLog) -> EventArrays:
    """Lay out a log as flat arrays in canonical order.

    The layout depends on the declared streams, not on which of them have events, so
    that a log cut at an earlier instant has the same codes and channels.
    """
    streams = log.streams
    numeric = {stream: _numeric_columns(log, stream) for stream in streams}
    channels = tuple((s, column) for s in streams for column in numeric[s])
    width = max((len(columns) for columns in numeric.values()), default=0)
    frames = [_keys(log, stream, code) for code, stream in enumerate(streams)]
    keys = pd.concat(frames, ignore_index=True) if frames else _keys_of_nothing()
    entities = tuple(sorted(set(keys["entity"])))
    entity = pd.Categorical(keys["entity"], categories=list(entities)).codes
    order = np.lexsort(
        (
            keys["sequence"],
            keys["event_time"],
            keys["stream"],
            keys["available_at"],
            entity,
        )
    )
    blocks = [_value_block(log, s, numeric[s], width) for s in streams]
    values = np.concatenate([np.empty((0, width)), *blocks])
    digests = np.concatenate(
        [
            np.empty((0, 2), np.uint64),
            *(
                _digests(log, s, frame)
                for s, frame in zip(streams, frames, strict=True)
            ),
        ]
    )
    return EventArrays(
        entities=entities,
        streams=streams,
        channels=channels,
        levels=log.levels,
        entity=entity.astype(np.int32)[order],
        stream=keys["stream"].to_numpy(np.int16)[order],
        event_time=keys["event_time"].to_numpy(np.int64)[order],
        available_at=keys["available_at"].to_numpy(np.int64)[order],
        sequence=keys["sequence"].to_numpy(np.int64)[order],
        revision=keys["revision"].to_numpy(np.int32)[order],
        values=values[order],
        sums=prefix_sums(digests[order]),
    )


def _numeric_columns(log: EventLog, stream: str) -> list[str]:
    schema = log.table(stream).schema
    return [
        name for name in log.values_of(stream) if schema.field(name).type == "double"
    ]


def _keys_of_nothing() -> pd.DataFrame:
    columns = ["entity", "event_time", "available_at", "sequence", "revision", "stream"]
    return pd.DataFrame({name: [] for name in columns}).astype({"entity": "str"})


def _keys(log: EventLog, stream: str, code: int) -> pd.DataFrame:
    frame = log.table(stream).select(list(KEY_COLUMNS)).to_pandas()
    return pd.DataFrame(
        {
            "entity": frame["entity"].astype("str"),
            "event_time": nanoseconds(frame["event_time"]),
            "available_at": nanoseconds(frame["available_at"]),
            "sequence": _sequence_numbers(log, stream),
            "revision": frame["revision"].to_numpy(np.int64),
            "stream": code,
        }
    )


def _sequence_numbers(log: EventLog, stream: str) -> Int64[np.ndarray, " n"]:
    # Through Arrow, never through pandas' float detour: ids above 2**53 stay exact.
    filled = log.table(stream)["sequence"].fill_null(NO_SEQUENCE)
    numbers: np.ndarray = filled.to_numpy()
    return numbers


def _value_block(
    log: EventLog, stream: str, columns: list[str], width: int
) -> Float64[np.ndarray, "n w"]:
    table = log.table(stream)
    block = np.full((table.num_rows, width), np.nan)
    for place, column in enumerate(columns):
        block[:, place] = table[column].to_numpy(zero_copy_only=False)
    return block


def _digests(log: EventLog, stream: str, keys: pd.DataFrame) -> np.ndarray:
    """Return the digests of a stream's events, whatever other streams the log holds."""
    table = log.table(stream)
    numeric = _numeric_columns(log, stream)
    columns = log.values_of(stream)
    entities, place = np.unique(
        keys["entity"].to_numpy(dtype=object), return_inverse=True
    )
    clocks = keys[["event_time", "available_at", "sequence", "revision"]]
    numbers = [table[n].to_numpy(zero_copy_only=False) for n in numeric]
    texts = [
        text_words(["\1" if t is None else t for t in table[n].to_pylist()])
        for n in columns
        if n not in numeric
    ]
    about = text_words([f"{stream}\0{columns}"])
    words = [
        text_words(entities.tolist())[place],
        np.repeat(about, table.num_rows),
        *(clocks[name].to_numpy(np.int64).view(np.uint64) for name in clocks),
        *(float_words(column) for column in numbers),
        *texts,
    ]
    return event_digests(words)
