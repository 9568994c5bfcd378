"""Where numbers come from: the code, the libraries, the machine, the data files."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

NUMERIC_LIBRARIES = (
    "exchange_calendars",
    "numpy",
    "pandas",
    "pyarrow",
    "pytorch-lightning",
    "scikit-learn",
    "scipy",
    "torch",
)
ALL_LIBRARIES = ("infoset", "arch", "mlflow", *NUMERIC_LIBRARIES)


@cache
def code_digest(*packages: str) -> str:
    """Return 16 hexadecimal digits of the source code of some packages."""
    digest = sha256()
    for package in packages:
        for name, content in sorted(_sources(files(package), package)):
            digest.update(name.encode())
            digest.update(content)
    return digest.hexdigest()[:16]


def library_versions(libraries: tuple[str, ...] = ALL_LIBRARIES) -> dict[str, str]:
    """Return the versions of Python and some libraries, by name."""
    return {"python": platform.python_version()} | {n: version(n) for n in libraries}


def machine() -> str:
    """Return the processor, its cores and the system, in words."""
    return f"{_processor()}, {os.cpu_count()} cores, {platform.system()}"


def files_digest(paths: Iterable[Path]) -> list[str]:
    """Return the SHA-256 of each file, in order.

    Raises
    ------
    OSError
        If a file cannot be read.
    """
    return [sha256(path.read_bytes()).hexdigest() for path in paths]


def _sources(folder: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for entry in folder.iterdir():
        name = f"{prefix}.{entry.name}"
        if entry.is_dir() and not entry.name.startswith(("_", ".")):
            found += _sources(entry, name)
        elif entry.name.endswith((".py", ".html")):
            found.append((name, entry.read_bytes()))
    return found


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if "model name" in line]
    return names[0] if names else platform.machine()
