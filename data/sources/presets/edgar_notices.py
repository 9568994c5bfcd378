"""What people should know about the filings of a list; nothing is changed."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
from jaxtyping import Bool

from infoset.data.sources.cells import SourceTable

from .edgar_acceptance import FilingClocks, Released
from .edgar_dates import DateRule


def filing_notices(
    filings: SourceTable,
    clocks: FilingClocks,
    chosen: Bool[np.ndarray, " n"],
    *,
    released: Released,
    date_only: DateRule | None,
) -> list[str]:
    """Count the filings whose clocks are not those of their stamps.

    Parameters
    ----------
    filings : SourceTable
        See `Filings`.
    clocks : FilingClocks
    chosen : ndarray of shape (n,)
        The filings that are used.
    released, date_only
        As declared.
    """
    usable = chosen & ~clocks.is_published_later
    late = int((clocks.is_late & usable).sum())
    dated = int((clocks.is_dated & usable).sum())
    later = clocks.is_published_later & chosen
    notices: list[str] = []
    if late:
        known = (
            "known from 06:00 New York of that day"
            if released == "filing_day"
            else "known at acceptance, as declared"
        )
        notices.append(
            f"{filings.name}: {late:,} filings dated on a later day than accepted: {known}."
        )
    if dated:
        known = "set aside" if date_only is None else "known by `date_only`"
        notices.append(f"{filings.name}: {dated:,} filings with a date alone: {known}.")
    if later.any():
        forms = pc.unique(filings.cells("form").filter(later)).to_pylist()
        notices.append(
            f"{filings.name}: {int(later.sum()):,} filings of forms "
            f"{', '.join(sorted(forms))} set aside: EDGAR publishes them weeks or months "
            "after their stamp, and the list does not say when (a daily index does)."
        )
    return notices
