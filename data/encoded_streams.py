"""Streams whose texts are numbers of an encoder, and what those numbers may know."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Int64

from .embeddings import embeddings
from .events import ENCODING_MARK, Boundary, EventLog
from .text_encoders import TextEncoder, checked_encoder, text_names

TEXT = "text"


@dataclass(frozen=True)
class Encoding:
    """Which encoder made a stream's numbers.

    Attributes
    ----------
    name, digest : str
    training_cutoff : Timestamp or None
        UTC; see `TextEncoder`.
    num_features : int
    """

    name: str
    digest: str
    training_cutoff: pd.Timestamp | None
    num_features: int

    def looks_ahead(
        self, forecast_time: Int64[np.ndarray, " n"], *, boundary: Boundary
    ) -> Bool[np.ndarray, " n"]:
        """Return which forecasts (UTC nanoseconds) are made before training ended.

        What was learned is dated like an event that becomes available at the cut-off.
        """
        if self.training_cutoff is None:
            return np.zeros(len(forecast_time), dtype=bool)
        cutoff = self.training_cutoff.as_unit("ns").value
        if boundary == "inclusive":
            return forecast_time < cutoff
        return forecast_time <= cutoff

    def to_json(self) -> dict[str, object]:
        """Return plain values."""
        cutoff = self.training_cutoff
        return {
            "name": self.name,
            "digest": self.digest,
            "training_cutoff": None if cutoff is None else cutoff.isoformat(),
            "num_features": self.num_features,
        }


def with_embeddings(
    log: EventLog,
    stream: str,
    encoder: TextEncoder,
    *,
    folder: Path | None = None,
    keep_text: bool = False,
) -> EventLog:
    """Return the log with a stream's value `text` turned into an encoder's numbers.

    The log then says which encoder made them (`encodings`), so that a run can mark the
    forecasts from before the end of its training. Append events first, and store the
    text: both are refused afterwards, because the mark would be lost.

    Parameters
    ----------
    log : EventLog
    stream : str
        With a text value named `text`.
    encoder : TextEncoder
    folder : Path, optional
        Where embeddings are kept and found again; see `embeddings.embeddings`.
    keep_text : bool
        Whether the text stays a value beside its numbers.

    Returns
    -------
    EventLog
        The stream has the values `text_00`, `text_01` ..., missing where the text is.

    Raises
    ------
    ValueError
        If the stream has no such text, or numbers of one already; or see `embeddings`.
    TypeError, LookAheadError
        See `embeddings`.
    """
    encoder = checked_encoder(encoder, encoder.name)
    table = log.table(stream)
    names = text_names(encoder.num_features)
    _require_text(stream, table, names)
    texts = table[TEXT].combine_chunks().dictionary_encode()
    codes = pc.fill_null(texts.indices, -1).to_numpy(zero_copy_only=False)
    numbers = embeddings(texts.dictionary.to_pylist(), encoder, folder=folder)
    missing = codes < 0
    for place, name in enumerate(names):
        column = np.append(numbers[:, place], np.nan)[codes]
        # An Arrow null, not a NaN, is what the log holds for a missing value.
        table = table.append_column(name, pa.array(column, mask=missing))
    if not keep_text:
        table = table.drop_columns(TEXT)
    cutoff = encoder.training_cutoff
    made = Encoding(
        name=encoder.name,
        digest=encoder.digest,
        training_cutoff=None if cutoff is None else cutoff.tz_convert("UTC"),
        num_features=encoder.num_features,
    )
    about = (table.schema.metadata or {}) | {
        ENCODING_MARK: json.dumps(made.to_json()).encode()
    }
    return log.with_table(stream, table.replace_schema_metadata(about))


def encodings(log: EventLog) -> dict[str, Encoding]:
    """Return the streams of a log whose texts an encoder turned into numbers."""
    found = {}
    for stream in log.streams:
        mark = (log.table(stream).schema.metadata or {}).get(ENCODING_MARK)
        if mark is not None:
            made = json.loads(mark)
            cutoff = made["training_cutoff"]
            made["training_cutoff"] = None if cutoff is None else pd.Timestamp(cutoff)
            found[stream] = Encoding(**made)
    return found


def _require_text(stream: str, table: pa.Table, names: list[str]) -> None:
    if TEXT not in table.column_names or table.schema.field(TEXT).type != "string":
        raise ValueError(
            f"stream {stream!r} must have a text value named {TEXT!r} to be encoded; got "
            f"{', '.join(table.column_names)}. Declare `text:` with an `encoder`, or "
            "keep the text."
        )
    taken = sorted(set(names) & set(table.column_names))
    if taken:
        raise ValueError(
            f"stream {stream!r} must not have numbers of its texts already; got "
            f"{', '.join(taken[:3])}. Encode it once, or rename them."
        )
