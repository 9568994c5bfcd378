"""One experiment, from its configuration to its report."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from infoset.data.events import EventLog
from infoset.data.forecast_times import TimeTable
from infoset.data.sources.nearest import did_you_mean
from infoset.models.forecasts import Forecaster

from .config import Experiment, content_digest, load_experiment
from .forecaster_specs import Installed
from .progress import Progress
from .provenance import code_digest, files_digest, library_versions
from .run_files import RunFiles, read_json
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
    show_progress : bool
        Bars on standard error, if that is a terminal.

    Returns
    -------
    Run

    Raises
    ------
    ValueError
        For anything wrong with the configuration, the data or the folders.
    """
    experiment, base = load_experiment(config, overrides)
    own = dict(forecasters or {})
    _require_distinct(experiment, own)
    _require_baseline(experiment, own)
    request = None
    if log is None and not own and not _has_installed(experiment):
        request = request_digest(experiment, base)
    files = RunFiles(experiment.run_dir)
    if request and is_done(experiment, files, request):
        return Run(files.folder, is_new=False)
    # Imported here: a finished run is found again without torch, Lightning or MLflow.
    from .report import write_report  # noqa: PLC0415
    from .stages import run_stages  # noqa: PLC0415

    with files.locked():
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
                base,
                files,
                tracker,
                log=log,
                own=own,
                progress=Progress(enabled=show_progress),
                command=_command(config, overrides),
                started=started,
            )
            write_report(files.folder)
            tracker.log_artifacts([files.report])
            tracker.finish()
        files.mark_done(request)
    return Run(files.folder, is_new=True)


def request_digest(experiment: Experiment, base: Path) -> str:
    """Return a digest of all that decides a run: settings, files, code, libraries."""
    read = [file for source in experiment.sources for file in source.files(base=base)]
    if isinstance(experiment.forecast_times, TimeTable):
        read.append(experiment.forecast_times.file)
    return content_digest(
        {
            "experiment": experiment.digest,
            "files": files_digest(read),
            "code": code_digest("infoset.data", "infoset.models", "infoset.pipeline"),
            "versions": library_versions(),
        }
    )


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


def _command(config: str | Path | Mapping[str, Any], overrides: Sequence[str]) -> str:
    if isinstance(config, Mapping):
        return "infoset.pipeline.run(...) from Python, with the configuration below"
    settings = [f"--set {shlex.quote(override)}" for override in overrides]
    return " ".join(["infoset run", str(config), *settings])


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
