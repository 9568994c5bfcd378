"""Runs in MLflow; nothing outside this package imports it."""

from .tracker import ExperimentTracker, RunDescription, ServedModel, TaskRecord

__all__ = ["ExperimentTracker", "RunDescription", "ServedModel", "TaskRecord"]
