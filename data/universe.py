"""The table of a universe: who may be forecast, and when."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from jaxtyping import Int64

from .declared_file import DeclaredFile
from .instants import nanoseconds
from .membership import ALWAYS, OPEN, Spells, overlapping
from .sources.clock_settings import Zone
from .sources.nearest import did_you_mean
from .validation import utc_instants

_OPEN_END = "9999-12-31"
_ISO = re.compile(
    r"\d{4}-\d{2}-\d{2}"
    r"([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(?P<offset>Z|[+-]\d{2}:?\d{2})?)?"
)


class Universe(DeclaredFile):
    """A table with one row per spell of membership: half-open, `member_until` excluded.

    Attributes
    ----------
    path : Path
        CSV (``.csv``, ``.csv.gz``) or Parquet, relative to the configuration.
    entity, member_from, member_until : str
        Columns. An empty `member_until`, or 9999-12-31, is a spell without an end.
    known_at : str, optional
        Column that says when a spell could be known. Without it membership is taken as
        known when it starts, which `assumptions` says.
    zone : str, optional
        IANA zone of dates and naive times; a date is its midnight.
    """

    SETTING: ClassVar[str] = "universe"
    entity: str
    member_from: str
    member_until: str
    known_at: str | None = None
    zone: Zone | None = None

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is assumed about when membership was known, for the report."""
        end = f"Its end is taken as known when it comes (column {self.member_until})."
        if self.known_at is None:
            start = (
                "Membership is taken as known when it starts (column "
                f"{self.member_from}): the table does not say when it was announced."
            )
        else:
            start = (
                "Membership counts from the later of its start and the instant it was "
                f"known (columns {self.member_from} and {self.known_at})."
            )
        return start, end

    def spells(self, entities: Sequence[str]) -> Spells:
        """Read the spells.

        Parameters
        ----------
        entities : sequence of str
            Who has a target. The table must be about all of them and nobody else: a
            list of targets without those that left would be survivorship.

        Raises
        ------
        ValueError
            If the file cannot be read or lacks a column, an entity is not among
            `entities` or has no spell, a cell is empty or no time, a time is naive
            without a `zone`, a spell ends before it starts, or two of one entity
            overlap; each with file, row and column.
        TypeError
            If the column of entities does not hold text.
        """
        table = self._table()
        names = self._entities(table)
        self._require_same(names, entities)
        start = self._instants(table, self.member_from)
        end = self._instants(table, self.member_until, may_be_open=True)
        known = np.full(len(start), ALWAYS, dtype=np.int64)
        if self.known_at is not None:
            known = self._instants(table, self.known_at)
        self._require_some_time(start, end)
        order = np.lexsort((start, names.astype("U")))
        spells = Spells(names[order], start[order], end[order], known[order])
        clash = overlapping(spells, order.tolist())
        if clash is not None:
            raise ValueError(
                "spells of one entity must not overlap; got two of "
                f"{names[clash[0]]!r} in rows {clash[0]} and {clash[1]} of {self.path}. "
                "Correct their ends, or join them."
            )
        return spells

    def _table(self) -> pa.Table:
        try:
            if self.file.suffix == ".parquet":
                table = pa.parquet.read_table(self.file)
            else:
                table = pa.csv.read_csv(
                    self.file,
                    convert_options=pa.csv.ConvertOptions(
                        column_types=dict.fromkeys(self._columns, pa.string()),
                        strings_can_be_null=False,
                    ),
                )
        except (pa.ArrowInvalid, OSError) as error:
            raise ValueError(
                "universe.path must be a CSV or Parquet table; got "
                f"{self.path}: {error}. Check the file."
            ) from error
        for setting, column in self._settings.items():
            if column not in table.column_names:
                raise ValueError(
                    f"universe.{setting} must be a column of {self.path} "
                    f"({', '.join(table.column_names)}); got {column!r}. "
                    f"{did_you_mean(column, table.column_names)}Correct `{setting}`."
                )
        if not table.num_rows:
            raise ValueError(
                f"{self.path} must hold a row; got a header only. Check the file, or "
                "remove `universe`."
            )
        return table

    @property
    def _settings(self) -> dict[str, str]:
        names = ("entity", "member_from", "member_until", "known_at")
        given = {name: getattr(self, name) for name in names}
        return {name: column for name, column in given.items() if column is not None}

    @property
    def _columns(self) -> tuple[str, ...]:
        return tuple(self._settings.values())

    def _entities(self, table: pa.Table) -> np.ndarray:
        column = table[self.entity]
        if not pa.types.is_string(column.type) and not pa.types.is_large_string(
            column.type
        ):
            raise TypeError(
                f"entity must be text; got {column.type} in column {self.entity!r} of "
                f"{self.path}. Ids that look like numbers lose their zeros: write them "
                "as text."
            )
        names = np.array(column.to_pylist(), dtype=object)
        for row in np.flatnonzero([not name for name in names])[:1]:
            raise ValueError(
                f"entity must be named; got an empty cell in row {row} of {self.path} "
                f"(column {self.entity!r}). Fill it, or remove the row."
            )
        return names

    def _require_same(self, names: np.ndarray, entities: Sequence[str]) -> None:
        wanted = set(entities)
        for row, name in enumerate(names):
            if name not in wanted:
                raise ValueError(
                    f"entity of a universe must have a target; got {name!r} in row {row} "
                    f"of {self.path}. {did_you_mean(name, entities)}Add it to `targets`, "
                    "also if it left since: without those that left, a test is of the "
                    "survivors."
                )
        absent = sorted(wanted - set(names))
        if absent:
            raise ValueError(
                f"every entity with a target must be in the universe; got no row of "
                f"{', '.join(map(repr, absent))} in {self.path}. Add the spells, or "
                "remove it from `targets`."
            )

    def _instants(
        self, table: pa.Table, column: str, *, may_be_open: bool = False
    ) -> Int64[np.ndarray, " n"]:
        # Dates and timestamps of Parquet as text: nanoseconds hold no year 9999.
        cells = pc.fill_null(pc.cast(table[column], pa.string()), "").to_pylist()
        texts = [cell.strip() for cell in cells]
        nanos = np.full(len(texts), OPEN, dtype=np.int64)
        wanted = np.array(
            [not (may_be_open and (not t or t.startswith(_OPEN_END))) for t in texts]
        )
        offset = np.zeros(len(texts), dtype=bool)
        for row in np.flatnonzero(wanted).tolist():
            offset[row] = self._has_offset(texts[row], row, column)
        for part, zone in ((wanted & offset, None), (wanted & ~offset, self.zone)):
            times = _times(pd.Series(texts, dtype="str").where(part), zone=zone)
            for row in np.flatnonzero(part & times.isna().to_numpy())[:1]:
                raise ValueError(
                    f"{column} must hold days of the calendar; got {texts[row]!r} in "
                    f"row {row} of {self.path}. Correct the cell."
                )
            utc = utc_instants(times, name=column, zone=zone, where=str(self.path))
            nanos[part] = nanoseconds(utc)[part]
        return nanos

    def _has_offset(self, text: str, row: int, column: str) -> bool:
        found = _ISO.fullmatch(text)
        if not found:
            got = repr(text) if text else "an empty cell"
            raise ValueError(
                f"{column} must hold dates or times such as 2019-12-23 or "
                f"2019-12-23T09:30-05:00; got {got} in row {row} of {self.path}. "
                "Correct the cell."
            )
        if found["offset"] is None and self.zone is None:
            raise ValueError(
                f"{column} must be timezone-aware; got {text!r} in row {row} of "
                f"{self.path}. Declare `universe.zone`, or write an offset or Z."
            )
        return found["offset"] is not None

    def _require_some_time(
        self, start: Int64[np.ndarray, " n"], end: Int64[np.ndarray, " n"]
    ) -> None:
        for row in np.flatnonzero(end <= start)[:1]:
            began, ended = pd.to_datetime([start[row], end[row]], utc=True)
            raise ValueError(
                f"{self.member_until} must be after {self.member_from}; got {ended} "
                f"and {began} in row {row} of {self.path}. Correct or remove the row."
            )


def _times(texts: pd.Series, *, zone: str | None) -> pd.Series:
    """Read ISO texts, all with an offset or (with a zone to be) all without one."""
    times: pd.Series = pd.to_datetime(
        texts, format="ISO8601", errors="coerce", utc=zone is None
    )
    return times
