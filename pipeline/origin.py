"""How a run came about: what repeats it, and what it replaces."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from .run_files import RunFiles, read_json


@dataclass(frozen=True)
class Origin:
    """How a run was started.

    Attributes
    ----------
    command : str
        What starts it again: a command line, or a call where objects came from Python.
    given : tuple of str
        What no command line can give: ``an own log``, ``the forecaster mine``.
    """

    command: str
    given: tuple[str, ...]

    @classmethod
    def of(
        cls,
        config: str | Path | Mapping[str, object],
        overrides: Sequence[str],
        *,
        has_log: bool,
        forecasters: Sequence[str],
        encoders: Sequence[str],
    ) -> Origin:
        """Read it from what `run` was given; objects by their names."""
        is_mapping = isinstance(config, Mapping)
        given = [
            *(["the configuration"] if is_mapping else []),
            *(["an own log"] if has_log else []),
            *(f"the forecaster {name}" for name in forecasters),
            *(f"the encoder {name}" for name in encoders),
        ]
        if not given:
            settings = [f"--set {shlex.quote(override)}" for override in overrides]
            command = " ".join(["infoset run", shlex.quote(str(config)), *settings])
            return cls(command, ())
        parts = [
            "{...}" if is_mapping else repr(str(config)),
            *([f"overrides={list(overrides)!r}"] if overrides else []),
            *(["log=..."] if has_log else []),
            *(["forecasters={...}"] if forecasters else []),
            *(["encoders={...}"] if encoders else []),
        ]
        return cls(f"infoset.pipeline.run({', '.join(parts)})", tuple(given))


def replaced_run(files: RunFiles, config_digest: str, given: Sequence[str]) -> str:
    """Say which other run's results a new one is about to replace; empty for none."""
    earlier = read_json(files.summary)
    if earlier is None:
        return ""
    before = earlier.get("given")
    objects = before if isinstance(before, list) else []
    if earlier.get("config_digest") != config_digest:
        what = "of another configuration"
    elif objects != list(given):
        what = "with other objects from Python"
    else:
        return ""
    return (
        f"{files.folder} holds a run {what} ({earlier.get('command')}, "
        f"{_minute(earlier.get('started'))}). Its report and results are replaced; its "
        "tasks stay, so that the same call soon makes them again. Another `name` keeps "
        "both."
    )


def _minute(started: object) -> str:
    try:
        return f"{pd.Timestamp(str(started)).tz_convert('UTC'):%Y-%m-%d %H:%M} UTC"
    except (ValueError, TypeError):
        return "at an unknown time"
