"""The name that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return ``Did you mean 'a' or 'b'? `` for names like `name`, else nothing."""
    by_case: dict[str, str] = {}
    for known in names:
        by_case.setdefault(known.strip().lower(), known)
    near = get_close_matches(name.strip().lower(), list(by_case), n=2, cutoff=0.6)
    if not near:
        return ""
    return f"Did you mean {' or '.join(repr(by_case[found]) for found in near)}? "
