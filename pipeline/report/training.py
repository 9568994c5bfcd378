"""What training did for each attention forecaster, from the run's record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Fit:
    """One fit: the step whose weights were kept, and the last one made."""

    fold: int
    seed: int
    kept_step: int
    last_step: int


@dataclass(frozen=True)
class Training:
    """The fits of one forecaster at the main history.

    A fit that kept step 0 learned nothing: its forecasts are those that training
    started from.
    """

    name: str
    fits: tuple[Fit, ...]

    @property
    def num_untrained(self) -> int:
        """How many fits kept step 0."""
        return sum(fit.kept_step == 0 for fit in self.fits)

    @property
    def is_untrained(self) -> bool:
        """Whether no fit learned anything."""
        return bool(self.fits) and self.num_untrained == len(self.fits)

    @property
    def sentence(self) -> str:
        """Say in how many fits training helped nothing."""
        every = f"all {self._counted}" if len(self.fits) > 1 else "the only fold"
        start = "those it started from, the scaled quantiles"
        if not self.num_untrained:
            return f"In {every} training improved the validation loss of {self.name}."
        where = f"{self.num_untrained} of {self._counted}"
        there = "there its"
        if self.is_untrained:
            where, there = every, "its"
        return (
            f"In {where} no training step of {self.name} improved the validation "
            f"loss: {there} forecasts are {start}."
        )

    @property
    def _counted(self) -> str:
        """How many fits there are: ``5 folds``, ``10 fits (5 folds, 2 seeds)``."""
        num_seeds = len({fit.seed for fit in self.fits})
        num_folds = len({fit.fold for fit in self.fits})
        folds = "1 fold" if num_folds == 1 else f"{num_folds} folds"
        if num_seeds == 1:
            return folds
        return f"{len(self.fits)} fits ({folds}, {num_seeds} seeds)"


def trainings(record: Mapping[str, Any], history: str) -> tuple[Training, ...]:
    """Return the training of each forecaster at a history, in the order of the record.

    Parameters
    ----------
    record : Mapping
        ``run.json``; older ones do not tell, and nothing is returned.
    history : str
    """
    rows = [row for row in record.get("training") or () if row["history"] == history]
    names = dict.fromkeys(str(row["forecaster"]) for row in rows)
    return tuple(
        Training(
            name,
            tuple(
                Fit(row["fold"], row["seed"], row["kept_step"], row["last_step"])
                for row in rows
                if row["forecaster"] == name
            ),
        )
        for name in names
    )


def by_fold(found: Sequence[Training]) -> list[tuple[int, list[list[Fit]]]]:
    """Return each fold with the fits of each forecaster in it."""
    folds = sorted({fit.fold for training in found for fit in training.fits})
    return [
        (fold, [[fit for fit in t.fits if fit.fold == fold] for t in found])
        for fold in folds
    ]


def all_untrained(found: Sequence[Training]) -> bool:
    """Whether there was training, and none of it helped."""
    return bool(found) and all(training.is_untrained for training in found)
