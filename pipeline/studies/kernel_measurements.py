"""The study's stages: recall and training side by side, replacement, latency."""

from __future__ import annotations

import tempfile
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from infoset.pipeline.config import Experiment
from infoset.pipeline.preparation import Prepared, load_log, prepare
from infoset.pipeline.progress import Progress
from infoset.pipeline.text_encoding import required_encoders, with_encoded_texts

from .kernel_jobs import (
    Results,
    planned_parts,
    replacements,
    results,
    run_parts,
    submit_recall,
)
from .kernel_latency import Latency, measured_latency
from .kernel_replacement import replaced
from .kernel_settings import KernelSettings
from .recall import RecallAccuracy
from .trained_softmax import TrainedSoftmax, trained_softmax
from .workers import one_thread, workers

# What worker processes import once, for all of them.
_WORK = "infoset.pipeline.studies.kernel_jobs"


@dataclass(frozen=True, eq=False)
class Measurements:
    """Everything that was measured, before it is written down.

    Attributes
    ----------
    prepared : Prepared
    subject : TrainedSoftmax
    results : Results
    latencies : list of Latency
    recall : list of RecallAccuracy
    """

    prepared: Prepared
    subject: TrainedSoftmax
    results: Results
    latencies: list[Latency]
    recall: list[RecallAccuracy]


def measure(
    experiment: Experiment,
    settings: KernelSettings,
    *,
    base: Path,
    folder: Path,
    progress: Progress,
) -> Measurements:
    """Do all that takes time; latency comes last, when nothing else works.

    Parameters
    ----------
    experiment : Experiment
        As `trained_softmax.studied` returns it; its executor decides where parts run.
    settings : KernelSettings
    base : Path
        What relative paths of the experiment start from.
    folder : Path
        Of the study, for what has to be on disk meanwhile.
    progress : Progress
    """
    with workers(experiment.executor, preload=[_WORK]) as pool:
        progress.stage("Starting the recall task")
        started = submit_recall(pool, settings.recall)
        progress.stage("Reading the sources and cutting the information sets")
        prepared = _prepared(experiment, base, folder)
        progress.stage(f"Training softmax attention: {settings.num_steps} steps")
        subject = trained_softmax(experiment, prepared, settings)
        found = _replaced(pool, subject, settings, folder, progress)
        models = (future.result() for future in started)
        tracked = progress.track(models, len(started), "Recalling stored pairs")
        recall = [cell for cells in tracked for cell in cells]
    progress.stage("Measuring latency")
    latencies = _latencies(experiment, settings, prepared, subject)
    return Measurements(prepared, subject, found, latencies, recall)


def _prepared(experiment: Experiment, base: Path, folder: Path) -> Prepared:
    log = with_encoded_texts(
        experiment,
        load_log(experiment, base),
        required_encoders(experiment, {}),
        folder=folder / "embeddings",
    )
    return prepare(experiment, log)


def _replaced(
    pool: Executor,
    subject: TrainedSoftmax,
    settings: KernelSettings,
    folder: Path,
    progress: Progress,
) -> Results:
    """Measure every replacement; the trained forecaster reaches workers as files."""
    # A later run clears a folder of this name away, should this one be cut off.
    with tempfile.TemporaryDirectory(prefix="softmax.partial", dir=folder) as place:
        subject.forecaster.save(Path(place))
        done = run_parts(pool, Path(place), subject.data, settings)
        number = len(planned_parts(settings))
        tracked = progress.track(done, number, "Replacing softmax")
        return results(settings, dict(tracked))


def _latencies(
    experiment: Experiment,
    settings: KernelSettings,
    prepared: Prepared,
    subject: TrainedSoftmax,
) -> list[Latency]:
    forecasters = {
        each.name: replaced(subject.forecaster, each, seed=0)
        for each in replacements(settings)
    }
    with one_thread():
        return measured_latency(
            forecasters,
            experiment,
            prepared,
            subject.data.test,
            num_forecasts=settings.latency_forecasts,
        )
