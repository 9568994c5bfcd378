"""From a configuration to samples and folds: everything before the first fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from infoset.data.changes import CHANGE, Change, with_change
from infoset.data.events import EventLog
from infoset.data.fingerprints import combined_fingerprint
from infoset.data.forecast_times import forecast_points
from infoset.data.membership import Membership, restrict
from infoset.data.sequences import Samples, prepare_samples
from infoset.data.sources import event_log
from infoset.data.targets import with_targets
from infoset.data.timeline import History

from .config import Experiment
from .folds import Fold
from .named_streams import require_named_streams
from .text_encoding import require_encoded


@dataclass(frozen=True, eq=False)
class Prepared:
    """The data of an experiment, ready for every task.

    Attributes
    ----------
    log : EventLog
        As the sources gave it.
    samples : Mapping[str, Samples]
        Per history (as text); all hold the same points in the same order.
    folds : tuple of Fold
        Positions into the samples.
    excluded : DataFrame
        reason, count: what is not forecast, and why.
    """

    log: EventLog
    samples: Mapping[str, Samples]
    folds: tuple[Fold, ...]
    excluded: pd.DataFrame

    @property
    def points(self) -> pd.DataFrame:
        """The forecast points with their targets."""
        return next(iter(self.samples.values())).points

    def test_fingerprint(self, history: History) -> str:
        """Return one fingerprint for the test information sets of all folds."""
        samples = self.samples[str(history)]
        rows = np.concatenate([fold.test for fold in self.folds])
        return combined_fingerprint(samples.fingerprint[rows].tolist())


def load_log(experiment: Experiment, base: Path) -> EventLog:
    """Read the sources of an experiment.

    Raises
    ------
    ValueError
        If there is no source, or one of them is refused.
    """
    if not experiment.sources:
        raise ValueError(
            "sources must name a file, or a log must be given; got neither. "
            "Declare `sources:` or call `run(config, log=...)`."
        )
    return event_log(experiment.sources, base=base)


def declared_changes(experiment: Experiment, log: EventLog) -> dict[str, Change]:
    """Return the change of each stream that has one.

    Sources declare changes; a target's stream needs one in any case.
    """
    wanted = {
        stream: source.change
        for source in experiment.sources
        if source.change is not None
        for stream in source.streams(log)
    }
    for target in experiment.targets:
        needed = Change(column=target.column, kind=target.kind)
        given = wanted.setdefault(target.stream, needed)
        if (given.column, given.kind) != (needed.column, needed.kind):
            raise ValueError(
                f"a target must be the change of its stream {target.stream!r} "
                f"({given.kind} of {given.column}); got {needed.kind} of "
                f"{needed.column}. Give the other value a stream of its own."
            )
    return wanted


def with_changes(experiment: Experiment, log: EventLog) -> EventLog:
    """Return the log with the changes that the sources declare and the targets need."""
    for stream, change in declared_changes(experiment, log).items():
        if CHANGE not in log.values_of(stream):
            log = with_change(log, stream, change)
    return log


def histories(experiment: Experiment) -> tuple[History, ...]:
    """Return the main history and the further ones, without repetition."""
    further = [History(last=length) for length in experiment.history_lengths]
    distinct = {str(history): history for history in [experiment.history, *further]}
    return tuple(distinct.values())


def prepare(experiment: Experiment, log: EventLog) -> Prepared:
    """Cut the information sets and split them into folds.

    Raises
    ------
    ValueError
        If an entity is unknown, no target is defined, a fold has no training row, or a
        declared text is not encoded yet.
    """
    require_named_streams(experiment, log)
    require_encoded(experiment, log)
    raw, log = log, with_changes(experiment, log)
    points = forecast_points(experiment.forecast_times, log, experiment.entities)
    members = _members(experiment, points)
    points = with_targets(log, members.points, experiment.targets)
    defined = points["target"].notna().to_numpy()
    if not defined.any():
        raise ValueError(
            "targets must be defined at a forecast time; got none. "
            f"({len(points)} forecast times). Check forecast_times and targets."
        )
    kept = points[defined].reset_index(drop=True)
    samples = {
        str(history): prepare_samples(
            log,
            kept,
            experiment.targets,
            history=history,
            boundary=experiment.boundary,
        )
        for history in histories(experiment)
    }
    folds, unknown = _with_trained_entities(
        experiment.folds.walk_forward().split(kept), kept
    )
    excluded = _excluded(log, points, kept, folds, samples[str(experiment.history)])
    excluded.loc[len(excluded)] = {
        "what": "validation and test rows, summed over folds",
        "reason": "of an entity without a training row in the fold",
        "count": unknown,
    }
    if experiment.universe is not None:
        excluded = pd.concat([_not_members(members), excluded], ignore_index=True)
    return Prepared(log=raw, samples=samples, folds=folds, excluded=excluded)


def _members(experiment: Experiment, points: pd.DataFrame) -> Membership:
    if experiment.universe is None:
        return Membership(points, num_outside=0, num_unknown=0, num_left=0)
    spells = experiment.universe.spells(experiment.entities)
    return restrict(spells, points, boundary=experiment.boundary)


def _not_members(members: Membership) -> pd.DataFrame:
    rows = [
        ("forecast points", "not a member of the universe then", members.num_outside),
        (
            "forecast points of members",
            "membership was not known yet",
            members.num_unknown,
        ),
        (
            "entities of the universe",
            "left it before the end: forecast until then, the last target kept",
            members.num_left,
        ),
    ]
    return pd.DataFrame(rows, columns=["what", "reason", "count"])


def _with_trained_entities(
    folds: tuple[Fold, ...], points: pd.DataFrame
) -> tuple[tuple[Fold, ...], int]:
    """Leave out entities that a fold cannot have learned; return how many rows."""
    entity = points["entity"].to_numpy(dtype=object)
    answer, dropped = [], 0
    for fold in folds:
        trained = list(set(entity[fold.train]))
        validation = fold.validation[np.isin(entity[fold.validation], trained)]
        test = fold.test[np.isin(entity[fold.test], trained)]
        dropped += len(fold.validation) - len(validation) + len(fold.test) - len(test)
        answer.append(replace(fold, validation=validation, test=test))
    return tuple(answer), dropped


def _excluded(
    log: EventLog,
    points: pd.DataFrame,
    kept: pd.DataFrame,
    folds: tuple[Fold, ...],
    samples: Samples,
) -> pd.DataFrame:
    tested = np.concatenate([fold.test for fold in folds])
    rows = [
        *_without_target(points),
        *_outside_the_test(folds, tested, len(kept)),
        (
            "information sets of test forecasts",
            "empty (forecast all the same)",
            int((samples.num_events[tested] == 0).sum()),
        ),
        ("event rows", "exact duplicates", log.num_duplicates),
        *_quarantined(log),
    ]
    return pd.DataFrame(rows, columns=["what", "reason", "count"])


def _without_target(points: pd.DataFrame) -> list[tuple[str, str, int]]:
    unresolved = points[points["target"].isna()].groupby("entity").size()
    reason = "no target: no value before, or none after, the forecast time"
    return [
        (f"forecast times of {entity}", reason, int(count))
        for entity, count in unresolved.items()
    ]


def _outside_the_test(
    folds: tuple[Fold, ...], tested: np.ndarray, num_points: int
) -> list[tuple[str, str, int]]:
    learned = np.concatenate([[*fold.train, *fold.validation] for fold in folds])
    unused = np.setdiff1d(np.arange(num_points), np.union1d(tested, learned))
    return [
        (
            "forecast points",
            "for training and validation only, not scored",
            len(np.setdiff1d(learned, tested)),
        ),
        ("forecast points", "in no span of any fold", len(unused)),
        (
            "training rows, summed over folds",
            "embargoed",
            sum(fold.embargo_size for fold in folds),
        ),
        (
            "training rows, summed over folds",
            "purged: the label's span or publication reaches the next span",
            sum(fold.purged_size for fold in folds),
        ),
    ]


def _quarantined(log: EventLog) -> list[tuple[str, str, int]]:
    groups = log.quarantine.groupby(["stream", "reason"]).size().reset_index(name="n")
    return [
        (f"event rows of {stream}", f"quarantined: {reason}", int(count))
        for stream, reason, count in groups.itertuples(index=False)
    ]
