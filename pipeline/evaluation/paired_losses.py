"""Losses of several forecasters side by side, on the same information sets only."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float, Int64

from infoset.data.errors import InformationMismatch

_KEYS = ("forecaster", "entity", "forecast_time", "fingerprint")


@dataclass(frozen=True, eq=False)
class PairedLosses:
    """One row per (forecast_time, entity) in order, one column per forecaster.

    Attributes
    ----------
    forecasters : list of str
        Sorted names.
    entities, times, fingerprints : Index
        What the codes below stand for.
    entity, time : ndarray of shape (keys,)
        Codes of each key.
    fingerprint : ndarray of shape (keys, forecasters)
        Codes; -1 where a forecaster has no forecast.
    loss : ndarray of shape (keys, forecasters)
        Mean over seeds; NaN where undefined or without forecast.
    """

    forecasters: list[str]
    entities: pd.Index
    times: pd.Index
    fingerprints: pd.Index
    entity: Int64[np.ndarray, " keys"]
    time: Int64[np.ndarray, " keys"]
    fingerprint: Int64[np.ndarray, "keys forecasters"]
    loss: Float[np.ndarray, "keys forecasters"]

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, loss: str) -> "PairedLosses":
        """Arrange a long frame: forecaster, entity, forecast_time, fingerprint, loss.

        Raises
        ------
        InformationMismatch
            If the seeds of one forecaster saw different information.
        ValueError
            If a column is missing, or a key or fingerprint is.
        """
        _refuse_incomplete(frame, loss)
        who, forecasters = pd.factorize(frame["forecaster"], sort=True)
        entity, entities = pd.factorize(frame["entity"], sort=True)
        time, times = pd.factorize(pd.Index(frame["forecast_time"]), sort=True)
        seen, fingerprints = pd.factorize(frame["fingerprint"])
        keys, key = np.unique(time * len(entities) + entity, return_inverse=True)
        cell = key * len(forecasters) + who
        values = frame[loss].to_numpy(dtype=np.float64, copy=True)
        values[~np.isfinite(values)] = np.nan
        # Losses are sorted within a cell, so that sums do not depend on row order.
        order = np.lexsort((values, cell))
        cells, first, num_seeds = np.unique(
            cell[order], return_index=True, return_counts=True
        )
        codes = np.full((len(keys), len(forecasters)), -1, dtype=np.int64)
        codes.flat[cells] = seen[order][first]
        mean = np.full(codes.shape, np.nan)
        mean.flat[cells] = np.add.reduceat(values[order], first) / num_seeds
        paired = cls(
            forecasters=[str(name) for name in forecasters],
            entities=pd.Index(entities),
            times=times,
            fingerprints=pd.Index(fingerprints),
            entity=keys % len(entities),
            time=keys // len(entities),
            fingerprint=codes,
            loss=mean,
        )
        paired._refuse_mixed_seeds(cell, seen)
        return paired

    def per_time(
        self, one: str, other: str
    ) -> tuple[Float[np.ndarray, " times"], Float[np.ndarray, " times"], int]:
        """Mean losses of two forecasters per forecast time, oldest first.

        Returns
        -------
        losses_a, losses_b : ndarray of shape (times,)
            Means over the entities for which both have a loss; times without any are
            left out.
        num_undefined : int
            Keys left out because a loss is missing.

        Raises
        ------
        InformationMismatch
            If the two did not forecast the same keys from the same information.
        """
        pair = [self.forecasters.index(one), self.forecasters.index(other)]
        seen = self.fingerprint[:, pair]
        unequal = np.flatnonzero(seen[:, 0] != seen[:, 1])
        if len(unequal):
            codes = (int(seen[unequal[0], 0]), int(seen[unequal[0], 1]))
            raise self._mismatch(int(unequal[0]), (one, other), codes)
        losses = self.loss[:, pair]
        # Keys that neither of the two was asked for belong to other forecasters.
        defined = ~np.isnan(losses).any(axis=1)
        num_undefined = int((~defined & (seen[:, 0] >= 0)).sum())
        time = self.time[defined]
        num = np.bincount(time)
        totals = [np.bincount(time, losses[defined, side]) for side in (0, 1)]
        means = [total[num > 0] / num[num > 0] for total in totals]
        return means[0], means[1], num_undefined

    def _refuse_mixed_seeds(
        self, cell: Int64[np.ndarray, " rows"], seen: Int64[np.ndarray, " rows"]
    ) -> None:
        mixed = np.flatnonzero(seen != self.fingerprint.flat[cell])
        if len(mixed):
            row = mixed[np.lexsort((seen[mixed], cell[mixed]))[0]]
            key, who = divmod(int(cell[row]), len(self.forecasters))
            name = self.forecasters[who]
            pair = (int(self.fingerprint[key, who]), int(seen[row]))
            raise self._mismatch(key, (name, f"another seed of {name}"), pair)

    def _mismatch(
        self, key: int, names: tuple[str, str], codes: tuple[int, int]
    ) -> InformationMismatch:
        told = [
            f"{name} saw {self.fingerprints[code] if code >= 0 else 'no such key'}"
            for name, code in zip(names, codes, strict=True)
        ]
        return InformationMismatch(
            "compared forecasts must have seen the same information; got"
            f" {' but '.join(told)} (entity {self.entities[self.entity[key]]},"
            f" forecast_time {self.times[self.time[key]]})."
            " Forecast both from the same events, boundary and history."
        )


def _refuse_incomplete(frame: pd.DataFrame, loss: str) -> None:
    absent = [name for name in (*_KEYS, loss) if name not in frame.columns]
    if absent:
        raise ValueError(
            f"losses must have the columns {', '.join((*_KEYS, loss))}; got none named"
            f" {', '.join(absent)}. Score the forecasts first."
        )
    for name in _KEYS:
        missing = np.flatnonzero(frame[name].isna())
        if len(missing):
            raise ValueError(
                f"{name} must not be missing; got none in row {missing[0]}"
                f" ({len(missing)} such rows). Every forecast has its key and"
                " fingerprint."
            )
