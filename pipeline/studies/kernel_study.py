"""What replacing softmax attention does: the whole study, from data to files."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from infoset.data.fingerprints import combined_fingerprint
from infoset.data.sequences import Samples
from infoset.pipeline.config import Experiment, content_digest, load_experiment
from infoset.pipeline.progress import Progress
from infoset.pipeline.provenance import library_versions, machine
from infoset.pipeline.report.matplotlib_folder import private_matplotlib_folder
from infoset.pipeline.run_files import RunFiles, write_json, write_text
from infoset.pipeline.tracking import ExperimentTracker

from .kernel_measurements import measure
from .kernel_record import finite, metrics, study_record
from .kernel_settings import KernelSettings, kernel_settings
from .kernel_tables import markdown
from .trained_softmax import studied

TRACKED_AS = "studies"
_NAME = "kernels"


@dataclass(frozen=True)
class KernelStudyRun:
    """A finished study.

    Attributes
    ----------
    folder : Path
        Where its files are.
    """

    folder: Path

    @property
    def numbers(self) -> Path:
        """Every number, with conventions, settings and versions (JSON)."""
        return self.folder / "study.json"

    @property
    def page(self) -> Path:
        """The tables (Markdown)."""
        return self.folder / "kernels.md"

    @property
    def replacement(self) -> Path:
        """The figure of the replaced forecaster (SVG)."""
        return self.folder / "replacement.svg"

    @property
    def recall(self) -> Path:
        """The figure of associative recall (SVG)."""
        return self.folder / "recall.svg"

    @property
    def files(self) -> tuple[Path, ...]:
        """All of them."""
        return self.page, self.replacement, self.recall, self.numbers

    def read(self) -> dict[str, Any]:
        """Return what `study.json` holds."""
        content: dict[str, Any] = json.loads(self.numbers.read_text(encoding="utf-8"))
        return content


def run_kernel_study(
    config: str | Path = "treasury",
    *,
    overrides: Sequence[str] = (),
    show_progress: bool = False,
) -> KernelStudyRun:
    """Train a softmax forecaster, replace its attention, and test what states recall.

    Parameters
    ----------
    config : str or Path
        A YAML file, or the name of a shipped experiment.
    overrides : sequence of str
        ``path.to.key=value``; ``study.`` leads to the study's own settings
        (`KernelSettings`), anything else to those of the experiment.
    show_progress : bool
        Bars on standard error, if that is a terminal; otherwise a line per stage.

    Returns
    -------
    KernelStudyRun

    Raises
    ------
    ValueError
        For anything wrong with the settings, the data or the folder.
    ChildProcessError
        If a worker process dies.
    """
    started = time.time()
    settings, others = kernel_settings(overrides)
    given, base = load_experiment(config, others)
    experiment = studied(given, settings)
    progress = Progress(enabled=show_progress)
    run = KernelStudyRun(experiment.runs / TRACKED_AS / _NAME)
    tracker = _tracker(experiment, settings, run.folder)
    with RunFiles(run.folder).locked(), tracker:
        measured = measure(
            experiment, settings, base=base, folder=run.folder, progress=progress
        )
        progress.stage("Writing and logging")
        study = study_record(experiment, settings, measured) | {
            "command": _command(config, overrides),
            "config_digest": _digest(experiment, settings),
            "versions": library_versions(),
            "machine": machine(),
            "started": pd.Timestamp(started, unit="s", tz="UTC").isoformat(),
            "seconds": round(time.time() - started, 1),
        }
        _write(run, finite(study))
        _log(tracker, experiment, run, measured.subject.data.test)
        tracker.finish()
    return run


def _tracker(
    experiment: Experiment, settings: KernelSettings, folder: Path
) -> ExperimentTracker:
    chosen = {
        "experiment": experiment.model_dump(mode="json"),
        "study": settings.model_dump(mode="json"),
    }
    return ExperimentTracker.open(
        experiment.tracking_uri,
        TRACKED_AS,
        run_dir=folder,
        config_text=yaml.safe_dump(chosen, sort_keys=False, allow_unicode=True),
        config_digest=_digest(experiment, settings),
        parameters=_parameters(experiment, settings),
    )


def _digest(experiment: Experiment, settings: KernelSettings) -> str:
    study = settings.model_dump(mode="json")
    return content_digest({"experiment": experiment.digest, "study": study})


def _log(
    tracker: ExperimentTracker,
    experiment: Experiment,
    run: KernelStudyRun,
    test: Samples,
) -> None:
    """Log the test information sets, the numbers that are defined, and the files."""
    tracker.log_dataset(
        combined_fingerprint(test.fingerprint.tolist()),
        name=experiment.name,
        num_rows=len(test),
        source=", ".join(source.name for source in experiment.sources),
    )
    tracker.log_scores(metrics(run.read()))
    tracker.log_artifacts(run.files)


def _write(run: KernelStudyRun, study: dict[str, Any]) -> None:
    with private_matplotlib_folder():
        from .kernel_figures import recall_figure, replacement_figure  # noqa: PLC0415
    drawn = {
        run.replacement: replacement_figure(study),
        run.recall: recall_figure(study),
    }
    for path, text in drawn.items():
        write_text(path, text)
    write_text(run.page, markdown(study, [path.name for path in drawn]))
    write_json(run.numbers, study)


def _parameters(
    experiment: Experiment, settings: KernelSettings
) -> dict[str, str | int | float | bool]:
    return {
        "study": _NAME,
        "experiment": experiment.name,
        "history": str(experiment.history),
        "num_features": ", ".join(map(str, settings.num_features)),
        "num_steps": settings.num_steps,
        "causal_scale": settings.causal_scale,
        "forecast_seeds": settings.forecast_seeds,
        "error_seeds": settings.error_seeds,
        "tuning_steps": settings.tuning.num_steps,
        "recall_pairs": ", ".join(map(str, settings.recall.num_pairs)),
    }


def _command(config: str | Path, overrides: Sequence[str]) -> str:
    changes = [f"--set {shlex.quote(override)}" for override in overrides]
    where = [] if str(config) == "treasury" else ["--config", shlex.quote(str(config))]
    return " ".join(["infoset study kernels", *where, *changes])
