"""What a run is asked to do: a digest of all that decides it, and its events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from infoset.data.events import EventLog
from infoset.data.forecast_times import TimeTable
from infoset.data.text_encoders import TextEncoder

from .config import Experiment, content_digest
from .provenance import code_digest, files_digest, library_versions

Contents = Sequence[tuple[tuple[str, str], ...]]  # name and SHA-256, by source


def request_digest(
    experiment: Experiment,
    base: Path,
    encoders: Mapping[str, TextEncoder] | None = None,
    *,
    contents: Contents | None = None,
) -> str:
    """Return a digest of all that decides a run: settings, files, code, libraries.

    `contents` is what the sources hold, if it is known; otherwise they are asked.
    """
    digests = [
        digest
        for source in (
            source_contents(experiment, base) if contents is None else contents
        )
        for _, digest in source
    ]
    if isinstance(experiment.forecast_times, TimeTable):
        digests += files_digest([experiment.forecast_times.file])
    if experiment.universe is not None:
        digests += files_digest([experiment.universe.file])
    return content_digest(
        {
            "experiment": experiment.digest,
            "files": digests,
            "encoders": {
                name: [encoder.digest, str(encoder.training_cutoff)]
                for name, encoder in (encoders or {}).items()
            },
            "code": code_digest("infoset.data", "infoset.models", "infoset.pipeline"),
            "versions": library_versions(),
        }
    )


def source_contents(experiment: Experiment, base: Path) -> Contents:
    """Return the names and digests of the files of each source."""
    return [source.contents(base=base) for source in experiment.sources]


def read_events(
    experiment: Experiment, base: Path, log: EventLog | None, contents: Contents | None
) -> EventLog:
    """Return the given events, or read sources that must hold what they held before.

    Raises
    ------
    ValueError
        If a source is refused, or changed since `contents` were taken.
    """
    from .preparation import load_log  # noqa: PLC0415 (slow, and a finished run needs no data)

    if log is not None:
        return log
    log = load_log(experiment, base)
    if contents is not None:
        now = source_contents(experiment, base)
        for source, before, after in zip(
            experiment.sources, contents, now, strict=True
        ):
            if before != after:
                raise ValueError(
                    f"source {source.name} must stay as it is while a run reads it; it "
                    "changed while it was read. Run again, or read a store at one "
                    "`as_of_ingest`."
                )
    return log
