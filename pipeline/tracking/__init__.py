"""Runs in MLflow; nothing outside this package imports it."""

from .finished_run import FinishedRun
from .tracker import ExperimentTracker, RunDescription, ServedModel, TaskRecord

__all__ = [
    "ExperimentTracker",
    "FinishedRun",
    "RunDescription",
    "ServedModel",
    "TaskRecord",
]
