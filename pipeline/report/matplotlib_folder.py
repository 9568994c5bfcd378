"""Import matplotlib without a file in anybody's home directory."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

_VARIABLE = "MPLCONFIGDIR"


@contextmanager
def private_matplotlib_folder() -> Iterator[None]:
    """Keep matplotlib's cache in a folder that is removed afterwards.

    Import it inside. Where it is imported already, or its folder is chosen, nothing
    is changed.
    """
    if "matplotlib" in sys.modules or _VARIABLE in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="infoset-") as folder:
        os.environ[_VARIABLE] = folder
        try:
            yield
        finally:
            del os.environ[_VARIABLE]
