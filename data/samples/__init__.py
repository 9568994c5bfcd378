"""Facts that come with the package; `SOURCES.md` beside this file says whose they are."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def sample_path(name: str) -> Path:
    """Return where a shipped file is.

    Raises
    ------
    ValueError
        If no file of that name is shipped.
    """
    shipped = samples()
    if name not in shipped:
        raise ValueError(
            f"sample must be one of {', '.join(shipped)}; got {name!r}. "
            "Name a shipped file, or declare your own by `path`."
        )
    return Path(str(files(__name__) / name))


def samples() -> tuple[str, ...]:
    """Return the names of the shipped files, sorted."""
    names = [entry.name for entry in files(__name__).iterdir()]
    return tuple(sorted(name for name in names if name.endswith(".csv.gz")))
