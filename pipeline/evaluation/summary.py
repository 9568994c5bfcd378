"""Scores and comparisons of a run's forecasts, as the files of the run hold them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from infoset.pipeline.config import Experiment

from .intervals import mean_difference_interval
from .metrics import mean_ic, rank_ic, row_scores, score_table
from .significance import compare_pairs

LOSS = "scaled_pinball"
CONVENTION = (
    "Pinball loss averaged over the quantile levels. Scaled: divided by the standard "
    "deviation of the entity's training targets of the fold, so that units can be "
    "averaged. Scores are averaged over seeds, then over the entities of a forecast "
    "time, then over forecast times. CRPS: twice the integral of the pinball loss over "
    "the levels, by trapezoids, the outer levels extended. MAE: of the median. "
    "Coverage: share of outcomes within the 5 % and 95 % quantiles. Intervals: 95 %, "
    "stationary bootstrap."
)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Scores by forecaster, entity, history and seed, and the pairwise comparisons.

    Attributes
    ----------
    by_forecaster, by_entity, by_history, by_seed : DataFrame
    comparison : DataFrame
        See `significance.compare_pairs`.
    baseline : str or None
    horizon : int
        Forecast times until a target resolves, which decides the lag of the tests.
    """

    by_forecaster: pd.DataFrame
    by_entity: pd.DataFrame
    by_history: pd.DataFrame
    by_seed: pd.DataFrame
    comparison: pd.DataFrame
    baseline: str | None
    horizon: int

    def scores_json(self) -> dict[str, object]:
        """Return what `scores.json` holds; undefined numbers are null."""
        return {
            "convention": CONVENTION,
            "by_forecaster": json_records(self.by_forecaster),
            "by_entity": json_records(self.by_entity),
            "by_history": json_records(self.by_history),
            "by_seed": json_records(self.by_seed),
        }

    def comparison_json(self) -> dict[str, object]:
        """Return what `comparison.json` holds."""
        return {
            "baseline": self.baseline,
            "loss": LOSS,
            "horizon": self.horizon,
            "pairs": json_records(self.comparison),
        }


def evaluate(
    experiment: Experiment, forecasts: pd.DataFrame, points: pd.DataFrame
) -> Evaluation:
    """Score all forecasts and compare the forecasters at the main history.

    Parameters
    ----------
    experiment : Experiment
    forecasts : DataFrame
        As `walk_forward.forecast_frame` makes them, of all tasks.
    points : DataFrame
        The forecast points with `resolves_at`, for the horizon.

    Raises
    ------
    InformationMismatch
        If two forecasters did not see the same information at the same points.
    """
    main = forecasts[forecasts["history"] == str(experiment.history)]
    scored = main.assign(**{LOSS: row_scores(main)[LOSS]})
    horizon = resolution_horizon(points)
    names = sorted(set(main["forecaster"]))
    comparison = pd.DataFrame()
    if len(names) > 1:
        comparison = compare_pairs(scored, loss=LOSS, horizon=horizon)
    return Evaluation(
        by_forecaster=_by_forecaster(main, horizon),
        by_entity=_by_entity(experiment, main),
        by_history=_by_history(experiment, forecasts),
        by_seed=score_table(main, ["forecaster", "seed"])[["forecaster", "seed", LOSS]],
        comparison=comparison,
        baseline=_baseline(experiment, names),
        horizon=horizon,
    )


def resolution_horizon(points: pd.DataFrame) -> int:
    """Return how many forecast times pass until a target is known, at least 1.

    Forecasts made before the last target was published share the unknown part of it,
    so their errors are autocorrelated up to one lag less. The count is the median
    over an entity's points, and the largest over the entities.
    """
    longest = 1
    for _, mine in points.groupby("entity"):
        ordered = mine.sort_values("forecast_time")
        times = ordered["forecast_time"].dt.tz_convert(None).to_numpy()
        resolved = ordered["resolves_at"].dt.tz_convert(None).to_numpy()
        passed = np.searchsorted(times, resolved, side="left") - np.arange(len(times))
        longest = max(longest, int(np.median(passed)))
    return longest


def json_records(frame: pd.DataFrame) -> list[dict[str, object]]:
    """Return the rows as plain values; NaN and missing become null."""
    return [
        {str(name): _plain(value) for name, value in record.items()}
        for record in frame.to_dict("records")
    ]


def _plain(value: object) -> object:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if isinstance(value, pd.Timestamp):
        return value.isoformat()
    return value


def _by_forecaster(main: pd.DataFrame, horizon: int) -> pd.DataFrame:
    table = score_table(main, ["forecaster"]).set_index("forecaster")
    rows = []
    for name, mine in main.groupby("forecaster", sort=False):
        low, high = _score_interval(mine)
        coefficient = mean_ic(
            rank_ic(mine["mean"], mine["target"], mine["forecast_time"]),
            horizon=horizon,
        )
        scores = table.loc[name]
        rows.append(
            {
                "forecaster": name,
                LOSS: scores[LOSS],
                f"{LOSS}_low": low,
                f"{LOSS}_high": high,
                "crps": scores["scaled_crps"],
                "mae": scores["scaled_mae"],
                "coverage_90": scores["coverage_90"],
                "num_forecasts": scores["num_forecasts"],
                "num_undefined": scores["num_undefined"],
                "rank_ic": coefficient.mean,
                "rank_ic_reason": coefficient.undefined,
                "undefined": scores["undefined"],
            }
        )
    return pd.DataFrame(rows).sort_values(LOSS, ignore_index=True)


def _by_entity(experiment: Experiment, main: pd.DataFrame) -> pd.DataFrame:
    units = {e: target.unit for target in experiment.targets for e in target.entities}
    table = score_table(main, ["forecaster", "entity"])
    table["unit"] = table["entity"].map(units)
    columns = ["forecaster", "entity", "unit", "pinball", "crps", "mae"]
    return table[[*columns, "coverage_90", "num_forecasts", "undefined"]]


def _by_history(experiment: Experiment, forecasts: pd.DataFrame) -> pd.DataFrame:
    lengths: Mapping[str, int | None] = {
        str(experiment.history): experiment.history.last,
        **{f"last {n}": n for n in experiment.history_lengths},
    }
    rows = []
    for (name, history), mine in forecasts.groupby(["forecaster", "history"]):
        low, high = _score_interval(mine)
        rows.append(
            {
                "forecaster": name,
                "history": history,
                "length": lengths.get(str(history)),
                LOSS: score_table(mine, ["forecaster"])[LOSS].iloc[0],
                "low": low,
                "high": high,
            }
        )
    table = pd.DataFrame(rows)
    table["length"] = table["length"].astype("Int64")
    return table.sort_values(["forecaster", "length"], ignore_index=True)


def _score_interval(forecasts: pd.DataFrame) -> tuple[float, float]:
    loss = row_scores(forecasts)[LOSS]
    per_time = loss.groupby(forecasts["forecast_time"]).mean().dropna()
    if per_time.empty:
        return float("nan"), float("nan")
    interval = mean_difference_interval(per_time.to_numpy())
    return interval.low, interval.high


def _baseline(experiment: Experiment, names: list[str]) -> str | None:
    if experiment.baseline is None or experiment.baseline in names:
        return experiment.baseline
    raise ValueError(
        f"baseline must be one of the forecasters ({', '.join(names)}); got "
        f"{experiment.baseline!r}."
    )
