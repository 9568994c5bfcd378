"""What tells XBRL facts apart, and which of them say something new."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
from jaxtyping import Bool, Float64, Int64

from infoset.data.sources.cells import SourceTable

INSTANT = "instant"
_DAYS_A_MONTH = 365.25 / 12
# Fiscal quarters have 12 to 14 weeks and fiscal years 52 or 53.
_LEEWAY = 8
_WHAT = ["cik", "taxonomy", "concept", "unit"]


def duration_names(
    table: SourceTable,
    days: Float64[np.ndarray, " n"],
    known: Int64[np.ndarray, " n"],
) -> pa.Array:
    """Return durations in whole months, as fiscal periods have them, else in days.

    Of facts with one concept, unit, end and rounded duration, but several starts, those
    with the start that was known first keep the months, and what comes later changes
    nothing in that; the others are named by their days.

    Parameters
    ----------
    table : SourceTable
        With the columns of `CompanyFacts`.
    days : ndarray of shape (n,)
        First and last day included; NaN for instants.
    known : ndarray of shape (n,)
        When each fact was known, in UTC nanoseconds since 1970.

    Returns
    -------
    Array
        `instant`; `3M`, `6M`, `12M` ... within 8 days of that many months; else such
        as `112D`.
    """
    frame = table.columns.select([*_WHAT, "end"]).to_pandas()
    frame = frame.assign(months=_months(days), days=days, known=known)
    spans = frame[frame["months"] > 0].sort_values(["known", "days"], kind="stable")
    first = spans.groupby([*_WHAT, "end", "months"])["days"].transform("first")
    frame.loc[first.index[(first != spans["days"]).to_numpy()], "months"] = 0.0
    return pa.array(_named(frame["months"].to_numpy(), days), pa.string())


def _months(days: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
    """Return whole months; 0 where the days are too far from them, NaN for instants."""
    months = np.round(days / _DAYS_A_MONTH)
    far = np.abs(days - months * _DAYS_A_MONTH) > _LEEWAY
    months[far] = 0.0
    return months


def _named(
    months: Float64[np.ndarray, " n"], days: Float64[np.ndarray, " n"]
) -> list[str]:
    lengths, place = np.unique(np.where(months > 0, months, -days), return_inverse=True)
    names = np.array([_name(length) for length in lengths.tolist()], dtype=object)
    named: list[str] = names[place].tolist()
    return named


def _name(length: float) -> str:
    if np.isnan(length):
        return INSTANT
    return f"{length:.0f}M" if length > 0 else f"{-length:.0f}D"


def fact_numbers(table: SourceTable) -> Int64[np.ndarray, " n"]:
    """Return a number for each concept, unit and period of a filer."""
    frame = table.columns.select([*_WHAT, "start", "end"]).to_pandas().fillna("")
    numbers: np.ndarray = frame.groupby(list(frame.columns)).ngroup().to_numpy(np.int64)
    return numbers


def is_new(
    numbers: Int64[np.ndarray, " n"],
    known: Int64[np.ndarray, " n"],
    sequence: Int64[np.ndarray, " n"],
    values: Float64[np.ndarray, " n"],
) -> Bool[np.ndarray, " n"]:
    """Return which facts have another value than was known of their period before.

    Parameters
    ----------
    numbers : ndarray of shape (n,)
        See `fact_numbers`.
    known : ndarray of shape (n,)
        When each fact was known, in UTC nanoseconds since 1970.
    sequence : ndarray of shape (n,)
        Their order at one instant.
    values : ndarray of shape (n,)
    """
    order = np.lexsort((sequence, known, numbers))
    fact, value = numbers[order], values[order]
    same = np.zeros(len(order), dtype=bool)
    same[1:] = (fact[1:] == fact[:-1]) & (value[1:] == value[:-1])
    new = np.empty(len(order), dtype=bool)
    new[order] = ~same
    return new


def require_apart(table: SourceTable, numbers: Int64[np.ndarray, " n"]) -> None:
    """Refuse a stream that has two facts of one filer and one end.

    Parameters
    ----------
    table : SourceTable
        With the columns of `CompanyFacts`, and `stream`.
    numbers : ndarray of shape (n,)
        See `fact_numbers`.

    Raises
    ------
    ValueError
        With the two facts.
    """
    frame = table.columns.select([*_WHAT, "start", "end", "stream"]).to_pandas()
    distinct = frame.assign(number=numbers).drop_duplicates(
        ["cik", "stream", "end", "number"]
    )
    again = distinct.duplicated(["cik", "stream", "end"], keep=False)
    if not again.any():
        return
    clash = distinct[again].sort_values(["stream", "cik", "end"], kind="stable")
    first, second = (_described(fact) for _, fact in clash.iloc[:2].iterrows())
    raise ValueError(
        f"stream of {table.name} must tell facts apart; got {clash['stream'].iloc[0]!r} "
        f"for {first} and for {second}. Write more of {{taxonomy}}, {{concept}}, "
        "{unit} and {duration} into `stream`."
    )


def _described(fact: pd.Series) -> str:
    start = "" if pd.isna(fact["start"]) else f"{fact['start']} to "
    return (
        f"{fact['taxonomy']}:{fact['concept']} in {fact['unit']} ({start}{fact['end']})"
    )
