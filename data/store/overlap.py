"""Which rows of a delivery are stored already: equal ones are, others must not clash."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Int64

from .ordering import sort_keys
from .schemas import KEY_NAMES


def already_stored(
    stream: str, delivered: pa.Table, stored: pa.Table, ingests: Int64[np.ndarray, " n"]
) -> Bool[np.ndarray, " m"]:
    """Return which of the delivered rows are stored with the same key and values.

    Parameters
    ----------
    stream : str
        For the message.
    delivered : pyarrow.Table of m rows
    stored : pyarrow.Table of n rows
        In the same schema.
    ingests : ndarray of shape (n,)
        Which ingest stored each row.

    Raises
    ------
    ValueError
        If a key (entity, event_time, available_at, sequence) is stored with other
        values.
    """
    found = np.zeros(delivered.num_rows, dtype=bool)
    if stored.num_rows == 0 or delivered.num_rows == 0:
        return found
    ours, theirs = _matching(delivered, stored)
    clashing = np.zeros(len(ours), dtype=bool)
    for name in delivered.column_names[len(KEY_NAMES) :]:
        one, other = delivered[name].take(ours), stored[name].take(theirs)
        clashing |= _differs(one, other)
    if clashing.any():
        first = int(clashing.argmax())
        raise ValueError(
            _clash(
                stream,
                delivered.slice(int(ours[first]), 1),
                stored.slice(int(theirs[first]), 1),
                ingest=int(ingests[theirs[first]]),
                count=int(clashing.sum()),
            )
        )
    found[ours] = True
    return found


def _matching(
    delivered: pa.Table, stored: pa.Table
) -> tuple[Int64[np.ndarray, " k"], Int64[np.ndarray, " k"]]:
    """Return the positions of rows with one key in both tables.

    A key is in a table once: sorted by key, equal neighbours are one row of each.
    """
    columns = [c.select(KEY_NAMES) for c in (stored, delivered)]
    keys = sort_keys(pa.concat_tables(columns))
    order = np.lexsort(keys)  # stable: the stored one first
    from_stored = order < stored.num_rows
    same = from_stored[:-1] & ~from_stored[1:]
    for key in keys:
        ordered = key[order]
        same &= ordered[1:] == ordered[:-1]
    at = np.flatnonzero(same)
    return order[at + 1] - stored.num_rows, order[at]


def _differs(one: pa.ChunkedArray, other: pa.ChunkedArray) -> Bool[np.ndarray, " k"]:
    """Return where two columns differ; what is missing equals what is missing."""
    if pa.types.is_floating(one.type):  # a NaN is a missing number, too
        one, other = (
            pc.if_else(pc.is_nan(c), pa.scalar(None, c.type), c) for c in (one, other)
        )
    both_missing = pc.and_(one.is_null(), other.is_null())
    same = pc.or_(pc.fill_null(pc.equal(one, other), False), both_missing)  # noqa: FBT003
    different: np.ndarray = pc.invert(same).to_numpy()
    return different


def _clash(
    stream: str, delivered: pa.Table, stored: pa.Table, *, ingest: int, count: int
) -> str:
    (ours,), (theirs,) = delivered.to_pylist(), stored.to_pylist()
    names = delivered.column_names[len(KEY_NAMES) :]
    differing = [n for n in names if _differs(delivered[n], stored[n]).any()]
    got = ", ".join(f"{name} {_shown(ours[name])}" for name in differing)
    kept = ", ".join(f"{name} {_shown(theirs[name])}" for name in differing)
    key = ", ".join(
        f"{name} {ours[name]}" for name in KEY_NAMES if ours[name] is not None
    )
    hint = ""
    if all(theirs[name] is None for name in differing):
        hint = (
            "A column that came after the event was stored cannot be filled in: give "
            "it a stream of its own, or deliver it with events that are not stored yet. "
        )
    return (
        f"one event must have one set of values; got {got} for ({key}) in stream "
        f"{stream!r}, stored as {kept} by ingest {ingest} ({count} such rows). "
        "A correction is a row of its own: give it the later `available_at` at which "
        f"it was known, or a `sequence`. {hint}Nothing was stored."
    )


def _shown(value: object) -> str:
    return "missing" if value is None else repr(value)
