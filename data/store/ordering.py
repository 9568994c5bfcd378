"""The rows of a stored stream in a log's order, with the revision of each."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Int64

from .schemas import KEY_NAMES

_REVISION = pa.field("revision", pa.int32(), nullable=False)
_PLACE = len(KEY_NAMES)


def with_revisions(rows: pa.Table) -> pa.Table:
    """Return distinct rows in the order of `EventLog`, numbered anew.

    The same as `infoset.data.revisions.ordered_with_revisions`, for rows that are known
    to be valid and distinct, and without a pandas frame.

    Parameters
    ----------
    rows : pyarrow.Table
        Stored rows of one stream, in any order.

    Returns
    -------
    pyarrow.Table
        By (entity, available_at, event_time, sequence), missing sequences first.
    """
    keys = sort_keys(rows)
    order = np.lexsort(keys)
    *_, event_time, _, entity = keys
    ordered = rows.take(pa.array(order)).combine_chunks()
    revision = _positions_in_groups(entity[order], event_time[order])
    return ordered.add_column(_PLACE, _REVISION, pa.array(revision, pa.int32()))


def sort_keys(rows: pa.Table) -> tuple[np.ndarray, ...]:
    """Return a log's order as keys for `numpy.lexsort`, the most important last.

    Rows have the same keys where they have the same (entity, available_at, event_time,
    sequence).
    """
    event_time, available_at = (
        rows[name].cast(pa.int64()).to_numpy()
        for name in ("event_time", "available_at")
    )
    sequence = rows["sequence"]
    return (
        sequence.fill_null(0).to_numpy(),
        sequence.is_valid().to_numpy(),
        event_time,
        available_at,
        _ranks(rows["entity"]),
    )


def _ranks(texts: pa.ChunkedArray) -> Int64[np.ndarray, " n"]:
    """Return the place of each text among the sorted distinct ones."""
    if len(texts) == 0:
        return np.empty(0, dtype=np.int64)
    encoded = texts.combine_chunks().dictionary_encode()
    rank_of = pc.rank(encoded.dictionary, sort_keys="ascending").to_numpy()
    ranks: np.ndarray = rank_of[encoded.indices.to_numpy()].astype(np.int64)
    return ranks


def _positions_in_groups(
    entity: Int64[np.ndarray, " n"], event_time: Int64[np.ndarray, " n"]
) -> Int64[np.ndarray, " n"]:
    """Return how many rows of the same (entity, event_time) come before each row."""
    order = np.lexsort((event_time, entity))  # stable: availability orders a group
    entity, event_time = entity[order], event_time[order]
    starts = np.ones(len(order), dtype=bool)
    starts[1:] = (entity[1:] != entity[:-1]) | (event_time[1:] != event_time[:-1])
    first = np.maximum.accumulate(np.where(starts, np.arange(len(order)), 0))
    positions = np.empty(len(order), dtype=np.int64)
    positions[order] = np.arange(len(order)) - first
    return positions
