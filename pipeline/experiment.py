"""One experiment, from its configuration to its report."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from infoset.data.events import EventLog
from infoset.data.sources.nearest import did_you_mean
from infoset.data.text_encoders import TextEncoder
from infoset.models.forecasts import Forecaster

from .config import Experiment, load_experiment
from .forecaster_specs import Installed
from .origin import Origin, replaced_run
from .progress import Progress
from .request import read_events, request_digest, source_contents
from .run_files import RunFiles, read_json
from .text_encoding import required_encoders
from .tracking import ExperimentTracker


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run.

    Attributes
    ----------
    folder : Path
        Where its files are.
    is_new : bool
        False where everything had been done before.
    """

    folder: Path
    is_new: bool

    @property
    def report(self) -> Path:
        """The report, one offline HTML file."""
        return RunFiles(self.folder).report

    @property
    def forecasts(self) -> pd.DataFrame:
        """One row per forecaster, history, fold, seed and forecast point."""
        frame: pd.DataFrame = pd.read_parquet(RunFiles(self.folder).forecasts)
        return frame

    @property
    def scores(self) -> pd.DataFrame:
        """One row per forecaster at the main history."""
        return self._records(RunFiles(self.folder).scores, "by_forecaster")

    @property
    def comparison(self) -> pd.DataFrame:
        """One row per pair of forecasters."""
        return self._records(RunFiles(self.folder).comparison, "pairs")

    @property
    def num_tasks(self) -> int:
        """How many fits its forecasts come from."""
        return self._count("total")

    @property
    def num_reused_tasks(self) -> int:
        """How many of them an earlier run had left, when this one was made."""
        return self._count("reused")

    def _count(self, key: str) -> int:
        summary = RunFiles(self.folder).summary
        tasks = (read_json(summary) or {}).get("tasks")
        if not isinstance(tasks, dict):
            raise ValueError(  # noqa: TRY004 (a file's content, not an argument)
                f"{summary} must say how many tasks there were; it does not. Run again."
            )
        return int(tasks[key])

    def _records(self, path: Path, key: str) -> pd.DataFrame:
        records = (read_json(path) or {}).get(key)
        if not isinstance(records, list):
            raise ValueError(  # noqa: TRY004 (a file's content, not an argument)
                f"{path} must hold a run's results; it cannot be read. Run again."
            )
        return pd.DataFrame(records)


def run(
    config: str | Path | Mapping[str, Any],
    *,
    overrides: Sequence[str] = (),
    log: EventLog | None = None,
    forecasters: Mapping[str, Forecaster] | None = None,
    encoders: Mapping[str, TextEncoder] | None = None,
    show_progress: bool = False,
) -> Run:
    """Plan, fit what is not already done, compare, measure, certify and report.

    Parameters
    ----------
    config : str, Path or mapping
        A YAML file, the name of a shipped experiment, or the content of a file.
    overrides : sequence of str
        ``path.to.key=value``.
    log : EventLog, optional
        The user's own events instead of the configured sources.
    forecasters : Mapping[str, Forecaster], optional
        The user's own forecasters beside the configured ones, by name. Without a
        `digest` of its own one is fitted in every run.
    encoders : Mapping[str, TextEncoder], optional
        The user's own encoders of texts, by the names that the configuration declares.
        Forecasts from before the end of an encoder's training are marked as look-ahead.
    show_progress : bool
        Bars on standard error, if that is a terminal; otherwise a line per stage.

    Returns
    -------
    Run

    Raises
    ------
    ValueError
        For anything wrong with the configuration, the data or the folders; or if a
        source changed while it was read.
    """
    experiment, base = load_experiment(config, overrides)
    own = dict(forecasters or {})
    _require_distinct(experiment, own)
    _require_baseline(experiment, own)
    readers = required_encoders(experiment, encoders or {})
    request = contents = None
    if log is None and not own and not _has_installed(experiment):
        contents = source_contents(experiment, base)
        request = request_digest(experiment, base, readers, contents=contents)
    files = RunFiles(experiment.run_dir)
    if request and is_done(experiment, files, request):
        return Run(files.folder, is_new=False)
    origin = Origin.of(
        config,
        overrides,
        has_log=log is not None,
        forecasters=list(own),
        encoders=list(encoders or {}),
    )
    events = partial(read_events, experiment, base, log, contents)
    progress = Progress(enabled=show_progress)
    with files.locked():
        if replaced := replaced_run(files, experiment.digest, origin.given):
            progress.warning(replaced)
        _carry_out(experiment, files, origin, events, own, readers, progress)
        files.mark_done(request)
    return Run(files.folder, is_new=True)


def _carry_out(  # noqa: PLR0917 - what `run` has made of its arguments
    experiment: Experiment,
    files: RunFiles,
    origin: Origin,
    events: Callable[[], EventLog],
    own: Mapping[str, Forecaster],
    readers: Mapping[str, TextEncoder],
    progress: Progress,
) -> None:
    """Run all stages and write the report, under a tracked run that tells how it went."""
    # Imported here: a finished run is found again without torch, Lightning or MLflow.
    from .report import write_report  # noqa: PLC0415
    from .stages import run_stages  # noqa: PLC0415

    started = time.time()
    tracker = ExperimentTracker.open(
        experiment.tracking_uri,
        experiment.name,
        run_dir=files.folder,
        config_text=experiment.to_yaml(),
        config_digest=experiment.digest,
        parameters=_parameters(experiment),
    )
    with tracker:
        run_stages(
            experiment,
            files,
            tracker,
            read_events=events,
            own=own,
            encoders=readers,
            progress=progress,
            command=origin.command,
            given=origin.given,
            started=started,
        )
        progress.stage("Writing the report")
        write_report(files.folder)
        tracker.log_artifacts([files.report])
        tracker.finish()


def is_done(experiment: Experiment, files: RunFiles, request: str) -> bool:
    """Whether the very same request was finished, is on disk, and is tracked."""
    return (
        files.is_done(request)
        and ExperimentTracker.find_finished(
            experiment.tracking_uri,
            experiment.name,
            files.folder,
            experiment.digest,
        )
        is not None
    )


def _has_installed(experiment: Experiment) -> bool:
    """Whether a forecaster comes from another package, whose code is not known here."""
    return any(isinstance(s, Installed) for s in experiment.forecasters.values())


def _require_distinct(experiment: Experiment, own: Mapping[str, Forecaster]) -> None:
    both = sorted(set(experiment.forecasters) & set(own))
    if both:
        raise ValueError(
            f"own forecasters must have names of their own; got {', '.join(both)}, "
            "which the configuration uses."
        )
    if not experiment.forecasters and not own:
        raise ValueError(
            "forecasters must name at least one; got none. Add one to the "
            "configuration or pass `forecasters=`."
        )
    for name, forecaster in own.items():
        if isinstance(forecaster, type):
            raise TypeError(
                f"forecaster {name!r} must be an object; got the class "
                f"{forecaster.__name__}. Write {forecaster.__name__}()."
            )
        if not isinstance(forecaster, Forecaster):
            raise TypeError(
                f"forecaster {name!r} must have fit(train, validation) and "
                f"forecast(samples); got {type(forecaster).__name__}."
            )


def _require_baseline(experiment: Experiment, own: Mapping[str, Forecaster]) -> None:
    names = {*experiment.forecasters, *own}
    if experiment.baseline is not None and experiment.baseline not in names:
        raise ValueError(
            f"baseline must be one of the forecasters ({', '.join(sorted(names))}); got "
            f"{experiment.baseline!r}. {did_you_mean(experiment.baseline, names)}"
            "Correct `baseline`, or leave it out."
        )


def _parameters(experiment: Experiment) -> dict[str, str | int | float | bool]:
    return {
        "entities": ", ".join(experiment.entities),
        "history": str(experiment.history),
        "boundary": experiment.boundary,
        "test_size": str(experiment.folds.test_size),
        "forecasters": ", ".join(experiment.forecasters),
        "seeds": ", ".join(map(str, experiment.seeds)),
        "width": experiment.network.width,
        "num_layers": experiment.network.num_layers,
        "max_steps": experiment.training.max_steps,
    }
