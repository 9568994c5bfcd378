"""From which history length on linear attention is cheaper than softmax."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float64

from .columns import TIMES, plain_rows
from .percentiles import REPS, SHORTEST_BLOCK, block_draws

_INTERVAL = (0.025, 0.975)
Times = Mapping[int, Float64[np.ndarray, " _"]]


@dataclass(frozen=True)
class Crossover:
    """The history length from which on `forecaster` is cheaper than `other`.

    Attributes
    ----------
    forecaster, other : str
        The linear and the softmax one.
    workload, backend : str
    length : float
        Events; NaN where undefined.
    low, high : float
        95 % interval; 0 and infinity are ends outside the measured lengths, NaN is no
        interval.
    shortest, longest : int
        The measured lengths reach from here to there; 0 without any.
    undefined : str or None
        Why there is no length.
    """

    forecaster: str
    other: str
    workload: str
    backend: str
    length: float
    low: float
    high: float
    shortest: int
    longest: int
    undefined: str | None

    def to_json(self) -> dict[str, object]:
        """Return it as plain data; what is no finite number is text or None."""
        plain = asdict(self)
        for name in ("length", "low", "high"):
            value = plain[name]
            if math.isnan(value):
                plain[name] = None
            elif math.isinf(value) or value == 0:
                plain[name] = "beyond" if value else "below"
        return plain


def crossing(
    lengths: Sequence[int], ratios: Float64[np.ndarray, "l r"]
) -> Float64[np.ndarray, " r"]:
    """Return where the ratio of costs rises above 1 for good, log-log between lengths.

    Parameters
    ----------
    lengths : sequence of int
        Ascending.
    ratios : ndarray of shape (lengths, r)
        Cost of softmax divided by that of linear, in columns.

    Returns
    -------
    ndarray of shape (r,)
        0 where it is above 1 at every length, infinity where it is not above 1 at the
        longest.
    """
    at, height = np.log(lengths), np.log(ratios)
    answer = np.empty(height.shape[1])
    for place, column in enumerate(height.T):
        under = np.flatnonzero(column <= 0)
        if not len(under):
            answer[place] = 0.0
        elif under[-1] == len(at) - 1:
            answer[place] = math.inf
        else:
            low = under[-1]
            share = -column[low] / (column[low + 1] - column[low])
            answer[place] = math.exp(at[low] + share * (at[low + 1] - at[low]))
    return answer


def crossover(
    linear: Times,
    softmax: Times,
    *,
    forecaster: str = "linear",
    other: str = "softmax",
    workload: str = "fresh",
    backend: str = "torch",
) -> Crossover:
    """Return the crossover of median latencies with its bootstrap interval.

    Parameters
    ----------
    linear, softmax : Mapping[int, ndarray]
        Single times by history length. At each length both were taken in turns: the
        same blocks of turns are drawn for both.
    forecaster, other, workload, backend : str
        What they are; see `Crossover`.
    """
    lengths = sorted(set(linear) & set(softmax))
    pairs = [_paired(linear[n], softmax[n]) for n in lengths]
    found, low, high = math.nan, math.nan, math.nan
    undefined = None
    if len(lengths) < 2:
        undefined = f"{len(lengths)} history lengths were measured; two are needed"
    else:
        ratios = np.array([[_median_ratio(pair)] for pair in pairs])
        found = float(crossing(lengths, ratios)[0])
        undefined = _outside(found, lengths, forecaster, other)
    if undefined is None:
        low, high = _interval(lengths, pairs, found)
    return Crossover(
        forecaster=forecaster,
        other=other,
        workload=workload,
        backend=backend,
        length=math.nan if undefined else found,
        low=low,
        high=high,
        shortest=min(lengths, default=0),
        longest=max(lengths, default=0),
        undefined=undefined,
    )


def crossovers(table: pd.DataFrame) -> list[Crossover]:
    """Return the crossover of each pair of forecasters, by workload and backend.

    Parameters
    ----------
    table : DataFrame
        As `latency.parquet`; only its `plain_rows` count.
    """
    rows = plain_rows(table)
    known = rows[(rows["p50_us"] > 0) & rows["attention"].isin(["linear", "softmax"])]
    found = []
    for (workload, backend), part in known.groupby(["workload", "backend"]):
        sides = [
            {str(n): _by_length(mine) for n, mine in each.groupby("forecaster")}
            for each in (part[part["attention"] == a] for a in ("linear", "softmax"))
        ]
        found += [
            crossover(
                mine,
                theirs,
                forecaster=forecaster,
                other=other,
                workload=str(workload),
                backend=str(backend),
            )
            for forecaster, mine in sides[0].items()
            for other, theirs in sides[1].items()
        ]
    return found


def _by_length(rows: pd.DataFrame) -> dict[int, np.ndarray]:
    pairs = zip(rows["history_length"], rows[TIMES], strict=True)
    return {int(n): np.array(times, dtype=np.float64) for n, times in pairs}


def _paired(
    linear: Float64[np.ndarray, " n"], softmax: Float64[np.ndarray, " m"]
) -> Float64[np.ndarray, "2 k"]:
    num = min(len(linear), len(softmax))
    return np.stack([linear[:num], softmax[:num]])


def _outside(
    found: float, lengths: Sequence[int], forecaster: str, other: str
) -> str | None:
    if found == 0:
        return (
            f"{forecaster} is cheaper at every measured length, from {lengths[0]:,} "
            "events on"
        )
    if math.isinf(found):
        return (
            f"{other} is still as cheap at the longest measured length, "
            f"{lengths[-1]:,} events"
        )
    return None


def _interval(
    lengths: Sequence[int], pairs: Sequence[Float64[np.ndarray, "2 _"]], found: float
) -> tuple[float, float]:
    """Return the interval; NaN where a length beside the crossover has too few turns.

    Two blocks of turns are enough. Other lengths with fewer, such as the longest ones,
    whose forecasts take seconds, keep the ratio that was measured.
    """
    place = int(np.searchsorted(lengths, found))
    enough = [pair.shape[1] >= 2 * SHORTEST_BLOCK for pair in pairs]
    if not all(enough[max(place - 1, 0) : place + 1]):
        return math.nan, math.nan
    ratios = np.stack(
        [
            _median_ratios(pair, seed) if drawn else np.full(REPS, _median_ratio(pair))
            for seed, (pair, drawn) in enumerate(zip(pairs, enough, strict=True))
        ]
    )
    drawn = np.sort(crossing(lengths, ratios))
    # Order statistics: between a number and infinity there is nothing to interpolate.
    low = drawn[math.floor(_INTERVAL[0] * (len(drawn) - 1))]
    high = drawn[math.ceil(_INTERVAL[1] * (len(drawn) - 1))]
    return float(low), float(high)


def _median_ratio(pair: Float64[np.ndarray, "2 k"]) -> float:
    fast, slow = np.median(pair, axis=1).tolist()
    return float(slow / fast)


def _median_ratios(
    pair: Float64[np.ndarray, "2 k"], seed: int
) -> Float64[np.ndarray, " r"]:
    parts = []
    for drawn in block_draws(pair.shape[1], block=SHORTEST_BLOCK, seed=seed):
        fast, slow = (np.median(times[drawn], axis=1) for times in pair)
        parts.append(slow / fast)
    return np.concatenate(parts)
