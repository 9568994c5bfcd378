"""The canonical order of a stream's events, and the revision number of each."""

from __future__ import annotations

import pandas as pd

KEY_COLUMNS = ("entity", "event_time", "available_at", "sequence", "revision")
_ORDER = ["entity", "available_at", "event_time", "sequence"]


def ordered_with_revisions(
    frame: pd.DataFrame, *, stream: str
) -> tuple[pd.DataFrame, int]:
    """Sort events, drop exact duplicates and number the revisions.

    Parameters
    ----------
    frame : DataFrame
        Checked events of one stream, in any row order; `revision` is computed anew.
    stream : str
        For the error message.

    Returns
    -------
    frame : DataFrame
        Ordered by (entity, available_at, event_time, sequence), missing sequences
        first, with `revision` 0 for the first print of (entity, event_time).
    num_duplicates : int
        How many exact duplicates were dropped.

    Raises
    ------
    ValueError
        If one key, availability and sequence has two different values.
    """
    unnumbered = frame.drop(columns="revision", errors="ignore")
    distinct = unnumbered.drop_duplicates()
    clashing = distinct.duplicated(_ORDER, keep=False)
    if clashing.any():
        first = distinct[clashing].sort_values(_ORDER).iloc[0]
        raise ValueError(
            "one event must have one set of values; got two for "
            f"(entity {first['entity']}, event_time {first['event_time']}, "
            f"available_at {first['available_at']}) in stream {stream!r} "
            f"({int(clashing.sum())} such rows). "
            "Declare a `sequence` that says which came later."
        )
    ordered = distinct.sort_values(_ORDER, na_position="first", ignore_index=True)
    revision = ordered.groupby(["entity", "event_time"]).cumcount()
    ordered["revision"] = revision.astype("int32")
    return ordered, len(unnumbered) - len(distinct)
