"""A run that is finished already, and to which more is added."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from .earlier_runs import RunMemo
from .store import TrackingStore
from .values import Measurements

__all__ = ["FinishedRun"]


class FinishedRun:
    """The parent run of a finished `infoset run`.

    Parameters
    ----------
    store : TrackingStore
        A connected store.
    run_id : str
    """

    def __init__(self, store: TrackingStore, run_id: str) -> None:
        self._store = store
        self._run_id = run_id

    @classmethod
    def find(cls, run_dir: Path) -> FinishedRun | None:
        """Find the run that a directory was logged as.

        Returns
        -------
        FinishedRun or None
            None where the directory has no note of one, or the store no longer has it.
        """
        memo = RunMemo.of_folder(run_dir)
        if memo is None:
            return None
        store = TrackingStore(memo.uri, memo.experiment)
        store.connect()
        return cls(store, memo.run_id)

    def log(
        self,
        *,
        scores: Mapping[str, float],
        curves: Mapping[str, Sequence[tuple[int, float]]],
        artifacts: Sequence[Path],
    ) -> None:
        """Add numbers, series of (step, value) and files; its status stays.

        A file takes the place of one of the same name. Numbers that are not finite are
        left out: the run's own account of them is closed.

        Raises
        ------
        ValueError
            If a file is missing or a name is not allowed.
        """
        measured = Measurements.of(scores, curves)
        self._store.log(self._run_id, at=time.time(), points=measured.points)
        self._store.log_paths(self._run_id, artifacts)
