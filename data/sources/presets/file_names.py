"""What the name of a vendor's file says."""

from __future__ import annotations

import re
from pathlib import Path


def symbol_in_name(path: Path, pattern: re.Pattern[str], example: str) -> str:
    """Return the first group of a pattern that the whole name of a file matches.

    Raises
    ------
    ValueError
        If it does not match.
    """
    found = pattern.fullmatch(path.name)
    if found is None:
        raise ValueError(
            f"symbol must stand in the name of the file, as in {example}; got "
            f"{path.name}. Declare `symbol`."
        )
    return found[1]
