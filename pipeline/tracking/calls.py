"""Calls of MLflow that print nothing, send nothing and fail with plain errors."""

from __future__ import annotations

import logging
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["import_mlflow", "mlflow_calls"]

_LOGGERS = ("mlflow", "alembic")
_MAX_REASON_LENGTH = 300
_PROGRESS_BARS = "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"
# Warnings that MLflow's own code causes, and its advice about a model's interface.
_NOT_OURS = (
    "The ``noload`` loader strategy is deprecated",  # its use of SQLAlchemy
    "Operation with range is deprecated",  # its use of pandas, in input examples
    "Hint: Inferred schema contains integer column",  # no integer here is missing
    ".*Any type hint is inferred as AnyType",  # of its own models, at import
    ".*Add type hints to the `predict` method",  # the signature is given instead
)


def import_mlflow() -> None:
    """Import MLflow with telemetry off and without its remarks at import.

    Sets `MLFLOW_DISABLE_TELEMETRY` for this process and those that it starts.
    """
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    before = logging.root.manager.disable
    logging.disable(logging.INFO)
    try:
        import mlflow.telemetry  # noqa: PLC0415 (it takes a second)
    finally:
        logging.disable(before)
    # Where somebody has imported MLflow before, this drops its telemetry client.
    mlflow.telemetry.set_telemetry_client()  # type: ignore[no-untyped-call]


@contextmanager
def mlflow_calls(path: Path) -> Iterator[None]:
    """Keep MLflow quiet while it is called, and give its errors plain classes.

    Parameters
    ----------
    path : Path
        The store, to be named in errors.

    Raises
    ------
    ValueError
        If MLflow refuses a name or a value.
    OSError
        If the store cannot be read or written.
    """
    from mlflow.exceptions import MlflowException  # noqa: PLC0415
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415

    try:
        with _silent(), _without_its_warnings():
            yield
    except (MlflowException, SQLAlchemyError) as error:
        reason = " ".join(str(error).split())[:_MAX_REASON_LENGTH]
        if getattr(error, "error_code", "") == "INVALID_PARAMETER_VALUE":
            raise ValueError(
                f"names and values must be such as MLflow takes; got: {reason} "
                f"({path}). Rename or shorten them."
            ) from error
        raise OSError(
            f"the tracking store must answer; got: {reason} ({path}). Check the disk "
            f"and whether another program holds the file, then start again."
        ) from error


@contextmanager
def _silent() -> Iterator[None]:
    """Silence MLflow's loggers and progress bars, and put them back at the end.

    Errors are silenced too, as they are raised in any case.
    """
    levels = {name: logging.getLogger(name).level for name in _LOGGERS}
    bars = os.environ.get(_PROGRESS_BARS)
    os.environ[_PROGRESS_BARS] = "false"
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
        if bars is None:
            del os.environ[_PROGRESS_BARS]
        else:
            os.environ[_PROGRESS_BARS] = bars


@contextmanager
def _without_its_warnings() -> Iterator[None]:
    """Drop the warnings of `_NOT_OURS`; pass on all others.

    Filters alone do not do: MLflow resets them in places, so what gets through is
    recorded and sorted afterwards.
    """
    with warnings.catch_warnings(record=True) as caught:
        for pattern in _NOT_OURS:
            warnings.filterwarnings("ignore", message=pattern)
        yield
    for each in caught:
        if not any(re.match(pattern, str(each.message)) for pattern in _NOT_OURS):
            warnings.warn_explicit(
                each.message, each.category, each.filename, each.lineno
            )
