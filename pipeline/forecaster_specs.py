"""What `forecasters:` may hold: one specification per kind of forecaster."""

from __future__ import annotations

from importlib.metadata import entry_points
from operator import not_
from typing import Annotated, Literal

from pydantic import Field

from infoset.data.strict import Strict
from infoset.models.forecasts import Forecaster
from infoset.models.settings import LinearAttention, NetworkSize, Training

ENTRY_POINTS = "infoset.forecasters"


# Where it is off it is not written: older configurations keep their digests.
RevisionFeatures = Annotated[bool, Field(exclude_if=not_)]


class Historical(Strict):
    """Training quantiles of the target; see `models.baselines.HistoricalQuantiles`."""

    kind: Literal["historical"]


class Ewma(Strict):
    """Scaled training quantiles; see `models.baselines.EwmaQuantiles`."""

    kind: Literal["ewma"]


class RidgeSpec(Strict):
    """Ridge regression; see `models.baselines.RidgeQuantiles`."""

    kind: Literal["ridge"]
    penalties: tuple[float, ...] = Field(default=(1e2, 1e3, 1e4, 1e5), min_length=1)
    revision_features: RevisionFeatures = False


class Boosting(Strict):
    """Gradient-boosted quantiles; see `models.baselines.BoostedQuantiles`."""

    kind: Literal["boosting"]
    max_trees: int = Field(default=60, ge=1)
    learning_rate: float = Field(default=0.05, gt=0)
    max_leaves: int = Field(default=6, ge=2)
    revision_features: RevisionFeatures = False


class Linear(LinearAttention):
    """Causal linear attention; see `models.settings.LinearAttention`."""

    kind: Literal["linear"]


class Softmax(Strict):
    """Causal softmax attention."""

    kind: Literal["softmax"]


class Installed(Strict):
    """A forecaster that an installed package offers as an entry point."""

    kind: Literal["installed"]
    name: str


ForecasterSpec = Annotated[
    Historical | Ewma | RidgeSpec | Boosting | Linear | Softmax | Installed,
    Field(discriminator="kind"),
]
AttentionSpec = Linear | Softmax


def build_forecaster(
    spec: Historical | Ewma | RidgeSpec | Boosting | Linear | Softmax | Installed,
    *,
    network: NetworkSize,
    training: Training,
    seed: int,
) -> Forecaster:
    """Return an unfitted forecaster.

    Raises
    ------
    ValueError
        If no installed package offers the named forecaster.
    """
    # Imported here: reading a configuration needs neither torch nor scikit-learn.
    from infoset.models.attention_forecaster import AttentionForecaster  # noqa: PLC0415
    from infoset.models.baselines import (  # noqa: PLC0415
        BoostedQuantiles,
        EwmaQuantiles,
        HistoricalQuantiles,
        RidgeQuantiles,
    )

    forecaster: Forecaster
    match spec:
        case Historical():
            forecaster = HistoricalQuantiles()
        case Ewma():
            forecaster = EwmaQuantiles()
        case RidgeSpec():
            forecaster = RidgeQuantiles(
                penalties=spec.penalties, revision_features=spec.revision_features
            )
        case Boosting():
            forecaster = BoostedQuantiles(
                max_trees=spec.max_trees,
                learning_rate=spec.learning_rate,
                max_leaves=spec.max_leaves,
                revision_features=spec.revision_features,
                seed=seed,
            )
        case Linear():
            forecaster = AttentionForecaster(
                "linear",
                linear=LinearAttention(**spec.model_dump(exclude={"kind"})),
                size=network,
                training=training,
                seed=seed,
            )
        case Softmax():
            forecaster = AttentionForecaster(
                "softmax", size=network, training=training, seed=seed
            )
        case Installed():
            forecaster = _installed(spec.name)
    return forecaster


def _installed(name: str) -> Forecaster:
    offered = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if name not in offered:
        raise ValueError(
            f"forecaster must be installed under {ENTRY_POINTS!r} "
            f"({', '.join(sorted(offered)) or 'none is'}); got {name!r}."
        )
    forecaster = offered[name].load()()
    if not isinstance(forecaster, Forecaster):
        raise TypeError(
            f"entry point {name!r} must give an object with fit and forecast; got "
            f"{type(forecaster).__name__}."
        )
    return forecaster
