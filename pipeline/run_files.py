"""The folder of a run: its file names, its lock, and writing without half-writing."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pandas as pd


@dataclass(frozen=True)
class RunFiles:
    """Where each file of a run is."""

    folder: Path

    @property
    def config(self) -> Path:
        """Return the resolved configuration."""
        return self.folder / "config.yaml"

    @property
    def forecasts(self) -> Path:
        """Return one row per forecast."""
        return self.folder / "forecasts.parquet"

    @property
    def scores(self) -> Path:
        """Return the scores by forecaster, entity, history and seed."""
        return self.folder / "scores.json"

    @property
    def comparison(self) -> Path:
        """Return the pairwise tests."""
        return self.folder / "comparison.json"

    @property
    def latency(self) -> Path:
        """Return the measured latencies."""
        return self.folder / "latency.parquet"

    @property
    def latency_events(self) -> Path:
        """Return the events that latencies are measured with."""
        return self.folder / "latency_events.parquet"

    @property
    def certificate(self) -> Path:
        """Return the look-ahead checks."""
        return self.folder / "certificate.json"

    @property
    def summary(self) -> Path:
        """Return folds, exclusions, versions and digests."""
        return self.folder / "run.json"

    @property
    def report(self) -> Path:
        """Return the report."""
        return self.folder / "report.html"

    @property
    def tasks(self) -> Path:
        """Return the folder of task results."""
        return self.folder / "tasks"

    @property
    def embeddings(self) -> Path:
        """Return the folder of texts that were encoded; a later run finds them again."""
        return self.folder / "embeddings"

    @property
    def done(self) -> Path:
        """Return the mark of a finished run: its request and the digests of its files."""
        return self.folder / "done.json"

    @property
    def results(self) -> tuple[Path, ...]:
        """Return everything that a finished run has written."""
        return (
            self.config,
            self.forecasts,
            self.scores,
            self.comparison,
            self.latency,
            self.latency_events,
            self.certificate,
            self.summary,
            self.report,
        )

    def clear(self) -> None:
        """Remove the results of an earlier run; those of its tasks stay."""
        for path in (self.done, *self.results):
            path.unlink(missing_ok=True)

    def mark_done(self, request: str | None) -> None:
        """Say that every result is there; the last thing that a run does."""
        digests = {path.name: _sha256(path) for path in self.results}
        write_json(self.done, {"request": request, "sha256": digests})

    def mark_done_again(self) -> None:
        """Renew the mark of a finished run whose results were measured anew."""
        mark = read_json(self.done)
        if mark is not None:
            request = mark.get("request")
            self.mark_done(None if request is None else str(request))

    def is_done(self, request: str) -> bool:
        """Whether this very request was finished and its results are unchanged."""
        mark = read_json(self.done)
        return (
            mark is not None
            and mark.get("request") == request
            and all(path.is_file() for path in self.results)
            and mark.get("sha256") == {p.name: _sha256(p) for p in self.results}
        )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Create the folder and keep other runs out of it meanwhile.

        What a run that was cut off left half-written in it is removed.

        Raises
        ------
        ValueError
            If the folder cannot be written, or another run works in it.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise ValueError(
                f"runs must name a writable folder; got {self.folder} "
                f"({error.strerror}). Set `runs` to another one."
            ) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(handle)
            raise ValueError(
                f"a run's folder must be free; another run works in {self.folder}. "
                "Wait for it, or give this one another `name`."
            ) from error
        try:
            remove_leftovers(self.folder)
            yield
        finally:
            os.close(handle)


def remove_leftovers(folder: Path) -> int:
    """Remove files and folders that were never finished; return how many.

    They are those named ``*.partial*``: a finished one is renamed.
    """
    leftovers = list(folder.glob("*.partial*"))
    for leftover in leftovers:
        if leftover.is_dir():
            shutil.rmtree(leftover)
        else:
            leftover.unlink()
    return len(leftovers)


def _sha256(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def write_text(path: Path, text: str) -> None:
    """Write a file so that it is either the old one or the whole new one."""
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def write_json(path: Path, content: object) -> None:
    """Write JSON; numbers that JSON does not know are refused."""
    write_text(path, json.dumps(content, indent=1, allow_nan=False) + "\n")


def write_frame(path: Path, frame: pd.DataFrame) -> None:
    """Write a Parquet file."""
    partial = path.with_name(f"{path.name}.partial")
    frame.to_parquet(partial, index=False)
    partial.replace(path)


def read_json(path: Path) -> dict[str, object] | None:
    """Return the content of a JSON file, or None where there is none that is whole."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None
