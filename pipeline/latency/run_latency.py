"""`infoset latency`: the whole suite on a finished run, into its files and its report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from infoset.models.attention_forecaster import SPEC, AttentionForecaster
from infoset.pipeline.config import load_experiment
from infoset.pipeline.progress import Progress
from infoset.pipeline.report import write_report
from infoset.pipeline.run_files import RunFiles, read_json
from infoset.pipeline.tracking import FinishedRun

from .files import read_tapes, write_latency
from .metrics import crossover_metrics, latency_curves
from .plan import LatencyPlan
from .suite import measure_suite, scored_length


@dataclass(frozen=True, eq=False)
class MeasuredRun:
    """What `measure_run` has done.

    Attributes
    ----------
    table : DataFrame
        As `latency.parquet`.
    report : Path
    is_logged : bool
        Whether the tracking store still had the run.
    """

    table: pd.DataFrame
    report: Path
    is_logged: bool


def scored_length_of(folder: Path) -> int:
    """Return the history length at which a run was scored.

    Raises
    ------
    ValueError
        If the folder is not that of a run.
    """
    files = _required(folder)
    experiment = load_experiment(files.config)[0]
    frame = pd.read_parquet(files.forecasts, columns=["history", "num_events"])
    sizes = frame.loc[frame["history"] == str(experiment.history), "num_events"]
    lengths = experiment.latency.history_lengths
    return scored_length(experiment.history.last, sizes.to_numpy(np.float64), lengths)


def measure_run(folder: Path, plan: LatencyPlan, progress: Progress) -> MeasuredRun:
    """Measure a run's networks, and write `latency.parquet` and the report anew.

    What was measured of forecasters without a stream stays as the run left it. Numbers
    and files are added to the run in MLflow.

    Raises
    ------
    ValueError
        If the folder is not that of a finished run with attention networks.
    """
    files = _required(folder)
    with files.locked():
        before = pd.read_parquet(files.latency)
        networks = _networks(files)
        tapes = read_tapes(files.latency_events)
        table = measure_suite(networks, tapes, plan, tell=progress.stage)
        table = _with_others(table, before)
        write_latency(files.latency, table)
        progress.stage("Writing the report")
        report = write_report(folder)
        files.mark_done_again()
        progress.stage("Logging to MLflow")
        tracked = FinishedRun.find(folder)
        if tracked is not None:
            tracked.log(
                scores=crossover_metrics(table),
                curves=latency_curves(table),
                artifacts=[files.latency, report],
            )
    return MeasuredRun(table, report, is_logged=tracked is not None)


def _required(folder: Path) -> RunFiles:
    files = RunFiles(folder)
    needed = (files.config, files.forecasts, files.latency, files.latency_events)
    absent = [path.name for path in needed if not path.is_file()]
    if absent:
        raise ValueError(
            "RUN must be the folder of a finished run, such as runs/treasury; got "
            f"{folder} without {', '.join(absent)}. Run the experiment first."
        )
    return files


def _networks(files: RunFiles) -> dict[str, AttentionForecaster]:
    """Read the newest network of each attention forecaster, which the run names."""
    models = (read_json(files.summary) or {}).get("models")
    if not isinstance(models, dict) or not models:
        raise ValueError(
            "a run must have a linear or softmax forecaster to be measured; "
            f"{files.summary} names none. Add one to its configuration and run it."
        )
    folders = {str(name): files.folder / str(path) for name, path in models.items()}
    absent = [name for name, path in folders.items() if not (path / SPEC).is_file()]
    if absent:
        raise ValueError(
            f"the networks of a run must be in {files.tasks}; got none of "
            f"{', '.join(absent)}. Run the experiment again."
        )
    return {name: AttentionForecaster.load(path) for name, path in folders.items()}


def _with_others(table: pd.DataFrame, before: pd.DataFrame) -> pd.DataFrame:
    """Add what the run measured of forecasters without a stream."""
    others = before[before["attention"].isna()].reindex(columns=table.columns)
    others.attrs = {}
    return pd.concat([table, others], ignore_index=True) if len(others) else table
