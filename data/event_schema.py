"""What the codes and columns of ordered events stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, UInt64

from .event_files import EventFiles
from .fingerprints import text_words


@dataclass(frozen=True)
class EventSchema:
    """The files' value columns, and what the codes of entity and stream stand for.

    Attributes
    ----------
    files : tuple of EventFiles
        What `part` counts.
    numbers, texts : tuple of tuple of str
        Numeric and text value columns of each part.
    entities, streams : tuple of str
        Sorted.
    """

    files: tuple[EventFiles, ...]
    numbers: tuple[tuple[str, ...], ...]
    texts: tuple[tuple[str, ...], ...]
    entities: tuple[str, ...] = ()
    streams: tuple[str, ...] = ()

    @property
    def num_numbers(self) -> int:
        """The largest number of numeric values of an event."""
        return max(map(len, self.numbers))

    @property
    def num_texts(self) -> int:
        """The largest number of texts of an event."""
        return max(map(len, self.texts))

    @property
    def channels(self) -> list[tuple[str, str]]:
        """(stream, numeric column), streams sorted."""
        return [
            (stream, column)
            for stream, part in zip(self.streams, self.parts, strict=True)
            for column in self.numbers[part]
        ]

    @cached_property
    def parts(self) -> tuple[int, ...]:
        """The part that tells the columns of each stream."""
        return tuple(map(self._part_of, self.streams))

    @cached_property
    def fits(self) -> Bool[np.ndarray, "s p"]:
        """Whether the columns of a part are those of a stream."""
        columns = list(zip(self.numbers, self.texts, strict=True))
        return np.array(
            [[columns[own] == other for other in columns] for own in self.parts],
            dtype=bool,
        ).reshape(len(self.streams), len(columns))

    @cached_property
    def entity_words(self) -> UInt64[np.ndarray, " e"]:
        """The digest's word for each entity."""
        return text_words(self.entities)

    @cached_property
    def stream_words(self) -> UInt64[np.ndarray, " s"]:
        """The digest's word for each stream and its columns."""
        columns = [self.files[part].values for part in self.parts]
        pairs = zip(self.streams, columns, strict=True)
        return text_words([f"{stream}\0{names}" for stream, names in pairs])

    def _part_of(self, stream: str) -> int:
        own = [i for i, part in enumerate(self.files) if part.stream == stream]
        # Files whose rows name the stream count where no file is the stream's own.
        places = own or [i for i, part in enumerate(self.files) if part.stream is None]
        if len({(self.numbers[i], self.texts[i]) for i in places}) > 1:
            columns = " and ".join(", ".join(self.files[i].values) for i in places)
            raise ValueError(
                f"stream {stream!r} must keep its value columns; got {columns}. "
                "Give the other values a stream of their own."
            )
        return places[0]


def event_schema(files: Sequence[EventFiles]) -> EventSchema:
    """Return the value columns of files; the codes stand for nothing yet."""
    return EventSchema(
        tuple(files),
        tuple(part.numbers for part in files),
        tuple(part.texts for part in files),
    )
