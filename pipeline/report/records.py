"""The folds of a run and what it left out, as its record tells them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


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
