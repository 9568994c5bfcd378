"""The folds of a run and what it left out, as its record tells them."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from .numbers import count, day

# A last test span below this share of the others' length is remarked.
_SHORT = 0.75


def fold_rows(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the folds: fold, three spans with their rows, purged and embargoed."""
    return [
        {
            "fold": fold.get("fold"),
            "spans": [_span(fold, part) for part in ("train", "validation", "test")],
            "purged": _first(fold, "purged_rows", "purged_size"),
            "embargoed": _first(fold, "embargo_rows", "embargo_size"),
        }
        for fold in record.get("folds") or []
    ]


def short_fold_note(record: Mapping[str, Any]) -> str:
    """Say that the last test span is much shorter than the others; empty if it is not."""
    folds = record.get("folds") or []
    sizes = [_first(fold, "test_dates", "test_rows", "num_test") for fold in folds]
    numbers = [size for size in sizes if isinstance(size, int | float)]
    if len(numbers) < 2 or len(numbers) < len(folds):
        return ""
    usual, last = median(numbers[:-1]), numbers[-1]
    if last >= _SHORT * usual:
        return ""
    what = "forecast times" if "test_dates" in folds[-1] else "forecasts"
    span = _span(folds[-1], "test")
    return (
        f"The last test span, {day(span['first'])} to {day(span['last'])}, is much "
        f"shorter than the others ({count(last)} {what} against {count(usual)}): there "
        "the data, or folds.last_test, end. Every forecast time weighs the same in "
        "the scores, so this fold counts for less."
    )


def excluded_rows(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what was left out and why; what happened to nothing comes last."""
    rows = [dict(row) for row in record.get("excluded") or []]
    return sorted(rows, key=lambda row: row.get("count") == 0)


def _span(fold: Mapping[str, Any], part: str) -> dict[str, Any]:
    return {
        "first": _first(fold, f"{part}_first", f"{part}_start"),
        "last": _first(fold, f"{part}_last", f"{part}_end"),
        "rows": _first(fold, f"{part}_rows", f"num_{part}"),
    }


def _first(content: Mapping[str, Any], *keys: str) -> object:
    return next((content[key] for key in keys if content.get(key) is not None), None)
