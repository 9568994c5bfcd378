"""The plan of a run: its tasks, each with a digest of all that decides its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from infoset.data.timeline import History
from infoset.models.forecasts import Forecaster

from .config import Experiment, content_digest
from .forecaster_specs import AttentionSpec, Boosting, Ewma, Historical, RidgeSpec
from .preparation import Prepared, histories
from .provenance import NUMERIC_LIBRARIES, code_digest, library_versions


@dataclass(frozen=True)
class Task:
    """One fit and its test forecasts.

    Attributes
    ----------
    forecaster : str
        Name in the configuration.
    history : History
    fold, seed : int
    digest : str
        Equal digests give equal results; empty for a forecaster object that has no
        `digest` of its own, which is fitted each time.
    """

    forecaster: str
    history: History
    fold: int
    seed: int
    digest: str

    @property
    def label(self) -> str:
        """For people: ``linear, last 256, fold 2, seed 0``."""
        return f"{self.forecaster}, {self.history}, fold {self.fold}, seed {self.seed}"


def plan(
    experiment: Experiment,
    prepared: Prepared,
    own: Mapping[str, Forecaster],
) -> tuple[Task, ...]:
    """Return the tasks of a run in the order in which they should start.

    The attention forecasters run at every history and seed; the others, which do not
    depend on a seed, at the main history and first seed.

    Parameters
    ----------
    experiment : Experiment
    prepared : Prepared
    own : Mapping[str, Forecaster]
        The user's own forecaster objects by name.
    """
    data = {
        (str(history), place): _data_content(experiment, prepared, history, place)
        for history in histories(experiment)
        for place in range(len(prepared.folds))
    }
    tasks: list[Task] = []
    for name in [*experiment.forecasters, *own]:
        spec = experiment.forecasters.get(name)
        every = isinstance(spec, AttentionSpec)
        parts = _forecaster_content(experiment, name, own)
        for history in histories(experiment) if every else (experiment.history,):
            for seed in experiment.seeds if every else experiment.seeds[:1]:
                for place in range(len(prepared.folds)):
                    content = parts and {
                        **parts,
                        "seed": seed,
                        "data": data[str(history), place],
                    }
                    digest = content_digest(content) if content else ""
                    tasks.append(Task(name, history, place, seed, digest))
    return tuple(tasks)


def _forecaster_content(
    experiment: Experiment, name: str, own: Mapping[str, Forecaster]
) -> dict[str, object] | None:
    """Return what decides a forecaster's results beside its data; None = unknown."""
    content: dict[str, object] = {
        "scale": experiment.scale.model_dump(mode="json"),
        **_code(),
    }
    if name in own:
        digest = getattr(own[name], "digest", None)
        return content | {"own": str(digest)} if digest else None
    spec = experiment.forecasters[name]
    if not isinstance(spec, Historical | Ewma | RidgeSpec | Boosting | AttentionSpec):
        return None  # of another package, whose code is not known here
    if isinstance(spec, AttentionSpec):
        content["network"] = experiment.network.model_dump(mode="json")
        content["training"] = experiment.training.model_dump(mode="json")
    return content | {"forecaster": spec.model_dump(mode="json")}


def _data_content(
    experiment: Experiment, prepared: Prepared, history: History, place: int
) -> dict[str, object]:
    samples = prepared.samples[str(history)]
    fold = prepared.folds[place]
    spans = prepared.points
    used = [fold.train, fold.validation, fold.test]
    train = samples.take(fold.train)
    labels = spans["target"].to_numpy()
    arrays = samples.arrays
    return {
        # The declared vocabulary decides the shape of a network and its first weights.
        "streams": list(arrays.streams),
        "channels": [list(channel) for channel in arrays.channels],
        "levels": sorted(list(level) for level in arrays.levels),
        "history": history.model_dump(mode="json"),
        "boundary": experiment.boundary,
        "targets": [target.model_dump(mode="json") for target in experiment.targets],
        "information": [
            sha256("".join(samples.fingerprint[rows].tolist()).encode()).hexdigest()
            for rows in used
        ],
        # Scales and channel statistics read the timelines from their start.
        "past": {
            name: line.fingerprints(
                np.zeros(1, np.int64),
                train.stop[train.entity == name].max(initial=0, keepdims=True),
            ).tolist()
            for name, line in train.timelines.items()
        },
        "labels": [sha256(labels[rows].tobytes()).hexdigest() for rows in used],
        "times": [
            sha256(samples.forecast_time[rows].tobytes()).hexdigest() for rows in used
        ],
    }


def _code() -> dict[str, object]:
    # A changed line, or another version of a library, may change a result.
    code = code_digest("infoset.data", "infoset.models")
    return {"code": code, "versions": library_versions(NUMERIC_LIBRARIES)}
