"""Forecasters without attention, on the same information sets."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float64
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from infoset.data.sequences import Samples

from .forecasts import LEVELS, Forecasts
from .tabular_features import FeatureTable, tabular_features


class HistoricalQuantiles:
    """The training quantiles of each entity's target: no information at all."""

    def __init__(self, levels: tuple[float, ...] = LEVELS) -> None:
        self.levels = levels

    def fit(self, train: Samples, validation: Samples) -> None:
        """Take the quantiles over training and validation, per entity."""
        self._quantiles = entity_quantiles(
            [train, validation], [train.target, validation.target], self.levels
        )

    def forecast(self, samples: Samples) -> Forecasts:
        """Forecast the same quantiles at every time."""
        return Forecasts(_of_entity(self._quantiles, samples), self.levels)


class EwmaQuantiles:
    """Training quantiles of the scaled target, times the scale known at the time.

    The scale is the exponentially weighted volatility of RiskMetrics (J.P. Morgan and
    Reuters 1996, Technical Document, 4th ed., eq. 5.3), see `data.scaling`.
    """

    def __init__(self, levels: tuple[float, ...] = LEVELS) -> None:
        self.levels = levels

    def fit(self, train: Samples, validation: Samples) -> None:
        """Take the quantiles of the scaled targets, per entity."""
        self._quantiles = entity_quantiles(
            [train, validation],
            [train.scaled_target, validation.scaled_target],
            self.levels,
        )

    def forecast(self, samples: Samples) -> Forecasts:
        """Forecast the quantiles times each sample's scale."""
        scaled = _of_entity(self._quantiles, samples)
        return Forecasts(scaled * samples.scale[:, None], self.levels)


class RidgeQuantiles:
    """A ridge regression for the mean, the training residuals for the spread.

    Both are in units of the causal scale. The penalty is chosen on the validation
    span, then the regression is fitted on the training span alone, so that the
    validation residuals, which the spread also uses, are out of sample.
    """

    def __init__(
        self,
        levels: tuple[float, ...] = LEVELS,
        penalties: tuple[float, ...] = (1e2, 1e3, 1e4, 1e5),
        *,
        revision_features: bool = False,
    ) -> None:
        self.levels = levels
        self.penalties = penalties
        self.revision_features = revision_features

    def fit(self, train: Samples, validation: Samples) -> None:
        """Choose the penalty and keep the residual quantiles, per entity."""
        table = tabular_features(train, revisions=self.revision_features)
        self._columns = _known_columns(table)
        features, target = table.values[:, self._columns], train.scaled_target
        ahead, later = self._features(validation), validation.scaled_target
        fits = [_ridge(penalty).fit(features, target) for penalty in self.penalties]
        losses = [np.mean((later - fit.predict(ahead)) ** 2) for fit in fits]
        self._regression = fits[int(np.argmin(losses))]
        self._quantiles = entity_quantiles(
            [train, validation],
            [
                target - self._regression.predict(features),
                later - self._regression.predict(ahead),
            ],
            self.levels,
        )

    def forecast(self, samples: Samples) -> Forecasts:
        """Forecast the conditional mean plus the residual quantiles."""
        mean = self._regression.predict(self._features(samples))
        scaled = mean[:, None] + _of_entity(self._quantiles, samples)
        return Forecasts(scaled * samples.scale[:, None], self.levels)

    def _features(self, samples: Samples) -> np.ndarray:
        table = tabular_features(samples, revisions=self.revision_features)
        return table.values[:, self._columns]


class BoostedQuantiles:
    """Gradient-boosted trees, one model per quantile level of the scaled target.

    For each level trees are added until the validation loss has not fallen for ten.
    """

    def __init__(
        self,
        levels: tuple[float, ...] = LEVELS,
        *,
        max_trees: int = 60,
        learning_rate: float = 0.05,
        max_leaves: int = 6,
        revision_features: bool = False,
        seed: int = 0,
    ) -> None:
        self.levels = levels
        self.max_trees = max_trees
        self.learning_rate = learning_rate
        self.max_leaves = max_leaves
        self.revision_features = revision_features
        self.seed = seed

    def fit(self, train: Samples, validation: Samples) -> None:
        """Fit one model per level."""
        table = tabular_features(train, revisions=self.revision_features)
        self._columns = _known_columns(table)
        features = table.values[:, self._columns]
        ahead = self._features(validation)
        self._models = []
        for level in self.levels:
            model = HistGradientBoostingRegressor(
                loss="quantile",
                quantile=level,
                max_iter=self.max_trees,
                learning_rate=self.learning_rate,
                max_leaf_nodes=self.max_leaves,
                min_samples_leaf=100,
                early_stopping=True,
                n_iter_no_change=10,
                random_state=self.seed,
            )
            model.fit(
                features,
                train.scaled_target,
                X_val=ahead,
                y_val=validation.scaled_target,
            )
            self._models.append(model)

    def forecast(self, samples: Samples) -> Forecasts:
        """Forecast each level; crossing quantiles are put in order."""
        features = self._features(samples)
        scaled = np.column_stack([model.predict(features) for model in self._models])
        ordered = np.sort(scaled, axis=1)
        return Forecasts(ordered * samples.scale[:, None], self.levels)

    def _features(self, samples: Samples) -> np.ndarray:
        table = tabular_features(samples, revisions=self.revision_features)
        return table.values[:, self._columns]


def entity_quantiles(
    parts: list[Samples],
    values: list[np.ndarray],
    levels: tuple[float, ...],
) -> dict[str, np.ndarray]:
    """Return the quantiles of the finite values of each entity.

    Raises
    ------
    ValueError
        If an entity has no finite value.
    """
    entity = np.concatenate([part.entity for part in parts])
    value = np.concatenate(values)
    answer = {}
    for name in sorted(set(parts[0].entity)):
        mine = value[(entity == name) & np.isfinite(value)]
        if not len(mine):
            raise ValueError(
                f"every entity must have a training target; got none for {name!r}. "
                "Lengthen folds.train_size or start the first test later."
            )
        answer[name] = np.quantile(mine, levels)
    return answer


def _of_entity(
    quantiles: Mapping[str, np.ndarray], samples: Samples
) -> Float64[np.ndarray, "n q"]:
    unknown = sorted(set(samples.entity) - set(quantiles))
    if unknown:
        raise ValueError(
            f"entity must be one of {', '.join(quantiles)}, which have training rows; "
            f"got {', '.join(unknown)}. Leave the points out or fit anew."
        )
    rows = [quantiles[name] for name in samples.entity]
    width = len(next(iter(quantiles.values())))
    return np.array(rows, dtype=np.float64).reshape(len(samples), width)


def _known_columns(features: FeatureTable) -> np.ndarray:
    """Return which features have a value somewhere in the training span."""
    known: np.ndarray = np.isfinite(features.values).any(axis=0)
    return known


def _ridge(penalty: float) -> Pipeline:
    # A missing feature becomes its training mean: no information, no effect.
    return make_pipeline(
        StandardScaler(),
        SimpleImputer(strategy="constant", fill_value=0.0),
        Ridge(alpha=penalty),
    )
