"""How rows of a table become events: columns, clocks, units.

A table gives one stream, or one stream per value of a column. Nothing here is guessed:
what a declaration does not say is refused when the table is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    model_validator,
)

from infoset.data.changes import Change
from infoset.data.events import EventLog
from infoset.data.revisions import KEY_COLUMNS
from infoset.data.strict import Strict

from .declared_clocks import Availability, AvailableColumn, EventTime

_TEMPLATE_COLUMN = re.compile(r"\{([^{}]+)\}")
_HASHED = re.compile(r"text(_\d+)?|num_words")


def _encoding(name: str) -> str:
    try:
        "text".encode(name)
    except LookupError as error:
        raise ValueError(
            f"must be a text encoding such as utf-8 or cp1252; got {name!r}"
        ) from error
    return name


class TextFormat(Strict):
    """How a text file writes its cells. An empty cell is the only missing marker."""

    delimiter: Annotated[str, Field(pattern=r"^[,;|:^~ \t]$")] = ","
    decimal: Literal[".", ","] = "."
    thousands: Annotated[str, Field(pattern=r"^[,. '\u00a0\u202f]$")] | None = None
    encoding: Annotated[str, AfterValidator(_encoding)] = "utf-8"

    @model_validator(mode="after")
    def _distinct(self) -> TextFormat:
        if self.thousands == self.decimal:
            raise ValueError(
                "must have different marks as `decimal` and `thousands`; "
                f"got {self.decimal!r} for both"
            )
        return self


class ColumnRef(Strict):
    """The name of a column whose cells are used."""

    column: str


class FileOrder(Strict):
    """Rows of one key and availability keep the order that they have in the file."""

    order: Literal["file"]


class ValueColumn(Strict):
    """A value: its column, whether it is a number, and its unit for the record."""

    column: str
    kind: Literal["number", "text"] = "number"
    unit: str | None = None


class Hashing(Strict):
    """The size of a stateless hash of words: it learns nothing, so it knows no future."""

    num_features: Annotated[int, Field(ge=1, le=4096)]


class TextColumn(Strict):
    """A text, turned into the numbers `text_00`, `text_01` ...

    Attributes
    ----------
    column : str
    hashing : Hashing, optional
        By a hash of its words, with `num_words` beside.
    encoder : str, optional
        By an encoder of this name; see `text_encoders`. The text is read as it is, and
        encoded when an experiment is run.
    keep_text : bool
        Whether the text stays a value, too.
    """

    column: str
    # What is not used is not written: configurations without encoders keep their digests.
    hashing: Hashing | None = Field(
        default=None, exclude_if=lambda given: given is None
    )
    encoder: str | None = Field(
        default=None, min_length=1, exclude_if=lambda given: given is None
    )
    keep_text: bool = False

    @model_validator(mode="after")
    def _one_way(self) -> TextColumn:
        if (self.hashing is None) == (self.encoder is None):
            got = "neither" if self.hashing is None else "both"
            raise ValueError(
                "must turn its text into numbers by `hashing: {num_features: 16}` or by "
                f"an `encoder`; got {got}"
            )
        return self


def _short_value(given: object) -> object:
    return {"column": given} if isinstance(given, str) else given


Value = Annotated[ValueColumn, BeforeValidator(_short_value)]


def _entity_kind(given: Any) -> str | None:  # noqa: ANN401 (any YAML value)
    if isinstance(given, str):
        return "constant"
    return "column" if isinstance(given, Mapping | ColumnRef) else None


Entity = Annotated[
    Annotated[str, Field(min_length=1), Tag("constant")]
    | Annotated[ColumnRef, Tag("column")],
    Discriminator(
        _entity_kind,
        custom_error_type="entity",
        custom_error_message="text (in quotes if it looks like a number) or {column: name}",
    ),
]


def streams_like(template: str, log: EventLog) -> tuple[str, ...]:
    """Return the streams of a log that a name or template can have named."""
    before, *after = map(re.escape, _TEMPLATE_COLUMN.split(template)[::2])
    pattern = re.compile(before + "".join(f".+{part}" for part in after), re.DOTALL)
    return tuple(name for name in log.streams if pattern.fullmatch(name))


class RowDeclaration(Strict):
    """How the rows of a table become one stream, or one stream per value of a column.

    Attributes
    ----------
    format : TextFormat
        How cells of text write numbers.
    where : Mapping[str, tuple of str]
        Rows to use: those whose cell is one of the listed texts, for each column.
    stream : str
        A name, or a template with one column, such as ``macro/{series}``.
    entity : str or ColumnRef
        A constant (`*` = market-wide), or the column of the ids.
    event_time : EventTime
    available_at : Availability
    sequence : str or FileOrder, optional
        Column of whole numbers that orders events of one key and availability; or that
        they keep the order of the file: their rows, counted from 1.
    values : Mapping[str, ValueColumn]
        Our name to the table's column; the short form ``price: close`` is a number.
    text : TextColumn, optional
    scheduled : bool
        Whether an event may be known before it happens.
    assumptions : tuple of str
        What is assumed about the clocks, for the report.
    change : Change, optional
        Carried along; computed elsewhere.
    """

    format: TextFormat = TextFormat()
    where: Mapping[str, tuple[str, ...]] = {}
    stream: Annotated[str, Field(min_length=1)]
    entity: Entity
    event_time: EventTime
    available_at: Availability
    sequence: str | FileOrder | None = None
    values: Mapping[str, Value] = {}
    text: TextColumn | None = None
    scheduled: bool = False
    assumptions: tuple[str, ...] = ()
    change: Change | None = None

    @property
    def stream_column(self) -> str | None:
        """The column of the stream's template, if it is one."""
        found = _TEMPLATE_COLUMN.search(self.stream)
        return None if found is None else found[1]

    def stream_of(self, cell: str) -> str:
        """Return the stream's name for a cell of the template's column."""
        return _TEMPLATE_COLUMN.sub(lambda _: cell, self.stream)

    def streams(self, log: EventLog) -> tuple[str, ...]:
        """Return the streams of a log that this source can have given."""
        column = self.stream_column
        if column is not None and column in self.where:
            possible = {self.stream_of(cell) for cell in self.where[column]}
            return tuple(name for name in log.streams if name in possible)
        return streams_like(self.stream, log)

    @property
    def columns(self) -> tuple[str, ...]:
        """The table's columns that are read, each once."""
        known = self.available_at
        named = [
            *self.where,
            self.stream_column,
            self.entity.column if isinstance(self.entity, ColumnRef) else None,
            self.event_time.column,
            known.column if isinstance(known, AvailableColumn) else None,
            self.sequence if isinstance(self.sequence, str) else None,
            *(value.column for value in self.values.values()),
            None if self.text is None else self.text.column,
        ]
        return tuple(dict.fromkeys(name for name in named if name is not None))

    @model_validator(mode="after")
    def _one_template(self) -> RowDeclaration:
        rest = _TEMPLATE_COLUMN.sub("", self.stream, count=1)
        if "{" in rest or "}" in rest:
            raise ValueError(
                "must have as `stream` a name, or a template with one column such as "
                f"'macro/{{series}}'; got {self.stream!r}"
            )
        return self

    @model_validator(mode="after")
    def _named_values(self) -> RowDeclaration:
        if not self.values and self.text is None:
            raise ValueError("must have `values` or `text`; got neither")
        for name in self.values:
            taken = self.text is not None and _HASHED.fullmatch(name) is not None
            if not name.isidentifier() or name in KEY_COLUMNS or taken:
                raise ValueError(
                    "must name its `values` by words like `price` that no other column "
                    f"of a stream has; got {name!r}"
                )
        return self

    @model_validator(mode="after")
    def _change_of_a_number(self) -> RowDeclaration:
        numbers = [n for n, value in self.values.items() if value.kind == "number"]
        if self.change is not None and self.change.column not in numbers:
            raise ValueError(
                "must take its `change` of a number among its values "
                f"({', '.join(numbers)}); got {self.change.column!r}"
            )
        return self
