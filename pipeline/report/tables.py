"""The tables of the report, computed from the files of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from infoset.pipeline.evaluation.metrics import levels_from_columns
from infoset.pipeline.look_ahead import LOOK_AHEAD

from .costs import scored_cost
from .differences import Difference, outcome
from .inputs import RunContents
from .numbers import count
from .words import listing, seed_sentence

_NOT_COMPARED = "the two were not compared"


@dataclass(frozen=True)
class EntityBlock:
    """The scores of all forecasters for one entity.

    Attributes
    ----------
    entity, unit : str
    rows : sequence of mapping
        forecaster, pinball, crps, mae, coverage_90, num_forecasts, change_percent
        (pinball against the baseline's) and is_lowest.
    """

    entity: str
    unit: str
    rows: Sequence[dict[str, Any]]


def difference(contents: RunContents, name: str, other: str) -> Difference:
    """Return the loss of `name` minus that of `other`, whichever came first."""
    pairs = contents.pairs
    for sign, first, second in ((1.0, name, other), (-1.0, other, name)):
        found = pairs[(pairs["forecaster"] == first) & (pairs["other"] == second)]
        if len(found):
            pair = found.iloc[0]
            bounds = sorted((sign * pair["low"], sign * pair["high"]))
            return Difference(
                name=name,
                other=other,
                mean=sign * float(pair["mean_difference"]),
                low=float(bounds[0]),
                high=float(bounds[1]),
                p_value=float(pair["p_value"]),
                other_loss=contents.loss_of(other),
                undefined=pair["undefined"],
            )
    nan = math.nan
    return Difference(
        name, other, nan, nan, nan, nan, contents.loss_of(other), _NOT_COMPARED
    )


def comparison_frame(contents: RunContents) -> pd.DataFrame:
    """Return one row per forecaster, lowest loss first.

    Returns
    -------
    DataFrame
        forecaster, scaled_pinball with its interval (`_low`, `_high`), difference to
        the baseline with its interval and p_value, the same in percent of the
        baseline's loss, outcome (what may be claimed of it, see `differences.outcome`),
        crps, mae, coverage_90, rank_ic, forecast_p50_us (see `costs.scored_cost`),
        num_forecasts, num_undefined and undefined (why a number is NaN). Differences
        are NaN, and there is no outcome, for the baseline itself. Where an encoder of
        texts was used also num_look_ahead, how many of the forecasts were made before
        the end of its training.
    """
    medians = scored_cost(contents).medians
    rows = [
        {**_difference_columns(contents, name), "forecast_p50_us": medians.get(name)}
        for name in contents.names
    ]
    columns = [*_DIFFERENCE, "undefined", "outcome", "forecast_p50_us"]
    added = pd.DataFrame(rows, columns=columns)
    table = contents.by_forecaster.reset_index(drop=True)
    reasons = [
        "; ".join(dict.fromkeys(r for r in pair if isinstance(r, str))) or None
        for pair in zip(table["undefined"], added["undefined"], strict=True)
    ]
    numbers = added[[*_DIFFERENCE, "forecast_p50_us"]].astype("float64")
    scores = ["crps", "mae", "coverage_90", "rank_ic"]
    counts = table[["num_forecasts", "num_undefined"]]
    loss = ["forecaster", *(f"scaled_pinball{end}" for end in ("", "_low", "_high"))]
    return pd.concat(
        [
            table[loss],
            numbers[list(_DIFFERENCE)],
            table[scores],
            numbers[["forecast_p50_us"]],
            counts,
        ],
        axis=1,
    ).assign(
        undefined=pd.Series(reasons, dtype=object),
        outcome=added["outcome"].astype(object).where(added["outcome"].notna(), None),
        **_look_ahead(contents),
    )


_DIFFERENCE = (
    "difference",
    "difference_low",
    "difference_high",
    "percent",
    "percent_low",
    "percent_high",
    "p_value",
)


def _look_ahead(contents: RunContents) -> dict[str, pd.Series]:
    """Return how many forecasts of each forecaster are marked, where any can be."""
    if LOOK_AHEAD not in contents.forecasts:
        return {}
    marks = contents.forecasts.groupby("forecaster")[LOOK_AHEAD].sum()
    return {"num_look_ahead": marks.reindex(contents.names).reset_index(drop=True)}


def _difference_columns(contents: RunContents, name: str) -> dict[str, Any]:
    if contents.baseline is None or name == contents.baseline:
        return {}
    found = difference(contents, name, contents.baseline)
    values = (found.mean, found.low, found.high)
    shares = [found.percent(value) for value in values]
    numbers = dict(zip(_DIFFERENCE, (*values, *shares, found.p_value), strict=True))
    return {**numbers, "undefined": found.undefined, "outcome": outcome(found)}


def entity_blocks(contents: RunContents) -> list[EntityBlock]:
    """Return the scores per entity, in the order of the configuration."""
    table = contents.by_entity
    order = {name: place for place, name in enumerate(contents.names)}
    blocks = []
    for entity in entities(contents):
        mine = table[table["entity"] == entity]
        mine = mine.sort_values("forecaster", key=lambda names: names.map(order))
        base = mine.loc[mine["forecaster"] == contents.baseline, "pinball"]
        reference = float(base.iloc[0]) if len(base) else math.nan
        lowest = mine["pinball"].min()
        rows = [
            {
                **{str(key): value for key, value in row.items()},
                "change_percent": _change_percent(row["pinball"], reference),
                "is_lowest": bool(row["pinball"] == lowest),
            }
            for row in mine.to_dict("records")
        ]
        units = [unit for unit in mine["unit"] if unit]
        blocks.append(EntityBlock(str(entity), str(units[0]) if units else "", rows))
    return blocks


def entities(contents: RunContents) -> list[str]:
    """Return who was forecast: those of the targets first, in their order."""
    declared = [
        str(entity)
        for target in contents.config.get("targets") or []
        for entity in target.get("entities") or []
    ]
    scored = [str(entity) for entity in contents.by_entity["entity"].unique()]
    return list(dict.fromkeys([*(e for e in declared if e in scored), *scored]))


def calibration(contents: RunContents) -> pd.DataFrame:
    """Return the share of outcomes at or below each forecast quantile.

    Returns
    -------
    DataFrame
        forecaster, level, share, num_forecasts (with an outcome) and num_times.
    """
    names, levels = levels_from_columns(contents.forecasts.columns)
    known = contents.forecasts[np.isfinite(contents.forecasts["target"])]
    rows = []
    for forecaster, mine in known.groupby("forecaster", sort=True):
        target = mine["target"].to_numpy()[:, None]
        shares = (target <= mine[names].to_numpy()).mean(axis=0)
        rows += [
            {
                "forecaster": forecaster,
                "level": level,
                "share": share,
                "num_forecasts": len(mine),
                "num_times": mine["forecast_time"].nunique(),
            }
            for level, share in zip(levels, shares, strict=True)
        ]
    columns = ["forecaster", "level", "share", "num_forecasts", "num_times"]
    return pd.DataFrame(rows, columns=columns)


def shown_forecasters(contents: RunContents) -> list[str]:
    """Return the two forecasters whose forecasts are drawn.

    The best linear and the best softmax one; otherwise what is there of them, the
    baseline, and the others by their loss.
    """
    wanted = [contents.best("linear"), contents.best("softmax"), contents.baseline]
    found = [name for name in [*wanted, *contents.names] if name is not None]
    return list(dict.fromkeys(found))[:2]


def unit_of(contents: RunContents, recent: pd.DataFrame) -> str:
    """Return the unit of the entity that `recent_forecasts` chose."""
    if recent.empty:
        return ""
    mine = contents.by_entity[contents.by_entity["entity"] == recent["entity"].iloc[0]]
    return str(next((unit for unit in mine["unit"] if unit), ""))


def recent_forecasts(
    contents: RunContents, forecasters: Sequence[str], *, most: int = 120
) -> pd.DataFrame:
    """Return the newest forecasts of the entity that has most, of its first seed.

    Returns
    -------
    DataFrame
        Rows of `forecasts.parquet` of one entity, at most `most` per forecaster, by
        forecast time; empty without forecasts.
    """
    frame = contents.forecasts[contents.forecasts["forecaster"].isin(forecasters)]
    counts = frame["entity"].value_counts()
    if counts.empty:
        return frame
    # Of several with equally many, the first of the configuration.
    order = [name for name in entities(contents) if name in counts.index]
    entity = max(order or sorted(counts.index), key=lambda name: counts[name])
    mine = frame[frame["entity"] == entity]
    first_seed = mine.groupby("forecaster")["seed"].transform("min")
    mine = mine[mine["seed"] == first_seed].sort_values("forecast_time", kind="stable")
    newest: pd.DataFrame = mine.groupby("forecaster").tail(most)
    return newest


def _change_percent(value: float, reference: float) -> float:
    return 100 * (value / reference - 1) if reference > 0 else math.nan


def undefined_notes(contents: RunContents) -> list[str]:
    """Say why numbers of the comparison are undefined."""
    comparison = comparison_frame(contents)
    notes = [
        f"{row['forecaster']}: {row['undefined']}"
        for row in comparison.to_dict("records")
        if row["undefined"]
    ]
    without = contents.by_forecaster[contents.by_forecaster["rank_ic"].isna()]
    reasons = without.groupby("rank_ic_reason", dropna=True)["forecaster"]
    for reason, names in reasons:
        who = listing(list(names), most=len(names))
        of = "" if len(without) == len(comparison) else f" of {who}"
        notes.append(f"rank IC{of}: {reason}")
    lost = contents.by_forecaster[contents.by_forecaster["num_undefined"] > 0]
    notes += _not_timed(contents)
    notes += [
        f"{name}: {count(number)} forecasts have no finite target or value and so no "
        "score"
        for name, number in zip(lost["forecaster"], lost["num_undefined"], strict=True)
    ]
    return notes


def _not_timed(contents: RunContents) -> list[str]:
    """Say why a forecaster has no latency at the main history."""
    cost = scored_cost(contents)
    missing = [name for name in contents.names if name not in cost.medians]
    timed = contents.latency_alone
    tried = timed[timed["workload"] == cost.workload]
    if not missing or tried.empty:
        return []
    reasons = tried.loc[tried["forecaster"].isin(missing), "undefined"].dropna()
    why = next(iter(reasons), "this run did not time it")
    return [f"{cost.heading} of {listing(missing, most=len(missing))}: {why}"]


def pair_rows(contents: RunContents) -> list[dict[str, Any]]:
    """Return every pair as it is stored, and what may be claimed about it."""
    return [
        {
            **{str(key): value for key, value in row.items()},
            "outcome": outcome(difference(contents, row["forecaster"], row["other"])),
        }
        for row in contents.pairs.to_dict("records")
    ]


def seed_ranges(contents: RunContents) -> list[str]:
    """Say how far scores depend on the seed, for forecasters that had several."""
    table = contents.by_seed
    groups = {str(name): mine for name, mine in table.groupby("forecaster")}
    return [
        seed_sentence(name, groups[name]["scaled_pinball"].tolist())
        for name in contents.names
        if name in groups and len(groups[name]) > 1
    ]
