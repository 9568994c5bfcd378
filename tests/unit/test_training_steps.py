"""Which step each fit kept, as `run.json` tells it."""

from pathlib import Path

from infoset.data import History
from infoset.pipeline.plan import Task
from infoset.pipeline.task_store import StoredTask
from infoset.pipeline.training_steps import training_records


def stored(name: str, fold: int, *curve: tuple[int, float]) -> StoredTask:
    task = Task(name, History(last=8), fold, seed=3, digest="d")
    return StoredTask(task, Path(), curve, 0.0, 1.0)


def test_the_kept_step_is_the_first_with_the_lowest_validation_loss() -> None:
    found = training_records(
        [
            stored("ewma", 0),
            stored("linear", 0, (0, 0.2), (25, 0.3), (50, 0.2)),
            stored("linear", 1, (0, 0.2), (25, 0.1), (50, 0.15)),
        ]
    )
    about = {"forecaster": "linear", "history": "last 8", "seed": 3}
    at_start = {"last_step": 50, "start_loss": 0.2}
    assert found == [
        about | at_start | {"fold": 0, "kept_step": 0, "kept_loss": 0.2},
        about | at_start | {"fold": 1, "kept_step": 25, "kept_loss": 0.1},
    ]
