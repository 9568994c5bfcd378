"""How the functions of this folder are compiled: on first use, never at import."""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from numba import njit

F = TypeVar("F", bound=Callable[..., Any])
# A number in compiled code, of whatever precision.
Real: TypeAlias = float | np.floating[Any]

# Sums may be taken in another order, and a product and a sum rounded at once. Nothing
# here lets the compiler assume that numbers are finite: a NaN must stay one.
_LIBERTIES = {"contract", "reassoc"}
# Wrappers for callers in C and Python take as long to compile as the code.
_ENTRY: dict[str, Any] = {
    "fastmath": _LIBERTIES,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
}
_PART: dict[str, Any] = {**_ENTRY, "no_cpython_wrapper": True}
_FOLDER = Path(__file__).parent


def compiled(function: F) -> F:
    """Return a part of the compiled code, which other parts call."""
    return cast("F", njit(_plain(function), **_PART))


def pasted(function: F) -> F:
    """Return a part that is put into its caller's code, and so compiled only there."""
    return cast("F", njit(_plain(function), **_PART, inline="always"))


def entry(signature: str, *, nogil: bool = False) -> Callable[[F], F]:
    """Compile a function that Python calls, for one signature and at once.

    Machine code is kept beside the sources, if that folder can be written: the home
    directory is never used. It is looked up by the function and what it closes over;
    close over `sources_digest()` to make code stale whenever any source changes.

    Parameters
    ----------
    signature : str
        In numba's notation.
    nogil : bool
        Whether other Python threads may run meanwhile.
    """

    def compile_now(function: F) -> F:
        kept: dict[str, Any] = {"cache": _may_keep_code(), "nogil": nogil}
        return cast("F", njit(signature, **_ENTRY, **kept)(_plain(function)))

    return compile_now


@cache
def sources_digest() -> int:
    """Return a number that changes with any source file of this folder."""
    sources = sorted(_FOLDER.glob("*.py"))
    digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in sources))
    return int.from_bytes(digest.digest()[:6], "big")


def _plain(function: F) -> F:
    """Return the function itself: type checkers that tests install wrap it."""
    return cast("F", inspect.unwrap(function))


def _may_keep_code() -> bool:
    kept = _FOLDER / "__pycache__"
    return os.access(kept if kept.exists() else _FOLDER, os.W_OK)
