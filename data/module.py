"""Information sets as tensors, and the Lightning data module that feeds them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
import pytorch_lightning as pl
import torch
from jaxtyping import Bool, Float, Float64, Int, Int64
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from .clock_features import query_features
from .instants import NS_PER_DAY
from .sequences import Samples

_MAX_POINTS_PER_ROW = 512


@dataclass(frozen=True, eq=False)
class Batch:
    """Information sets side by side, padded on the right.

    Axes: B rows (one slice of a timeline each), T events, W values, P forecast points
    of a row, F clock features.

    Attributes
    ----------
    values : [B, T, W]
        Values of an event in the order of its stream's channels; 0 where missing.
    present : [B, T, W]
        True where a value is there.
    stream, revision : [B, T]
    elapsed_days : [B, T]
        Since the event before in the slice; 0 for the first.
    lag_days : [B, T]
        available_at - event_time.
    mask : [B, T]
        True = a real event.
    stop : [B, P]
        How many of the row's events a point sees.
    entity : [B, P]
        Number of the entity in the order given to `SampleDataset`.
    clock : [B, P, F]
        See `clock_features.query_features`.
    scale, target : [B, P]
        Target in its own unit; NaN where unknown.
    point : [B, P]
        Position in the samples; -1 where a row has fewer points.
    """

    values: Float[Tensor, "B T W"]
    present: Bool[Tensor, "B T W"]
    stream: Int[Tensor, "B T"]
    revision: Float[Tensor, "B T"]
    elapsed_days: Float[Tensor, "B T"]
    lag_days: Float[Tensor, "B T"]
    mask: Bool[Tensor, "B T"]
    stop: Int[Tensor, "B P"]
    entity: Int[Tensor, "B P"]
    clock: Float[Tensor, "B P F"]
    scale: Float[Tensor, "B P"]
    target: Float[Tensor, "B P"]
    point: Int[Tensor, "B P"]

    def to(self, device: torch.device | str) -> Batch:
        """Return the batch on another device."""
        return Batch(**{f.name: getattr(self, f.name).to(device) for f in fields(self)})


class SampleDataset(Dataset[Batch]):
    """Samples by row: a row is one slice with the forecast points that share its start.

    With `history: last n` every point has a row of its own; with `all` or `since` the
    points of one start share a row, so that a causal encoder reads their events once.
    """

    def __init__(
        self, samples: Samples, entities: tuple[str, ...] | None = None
    ) -> None:
        """Take samples; `entities` numbers the entities, by default as they do."""
        self.samples = samples
        self.rows = _rows(samples)
        lines = samples.timelines
        sizes = np.cumsum([0, *(len(line) for line in lines.values())])
        offset = dict(zip(lines, sizes.tolist(), strict=False))
        self._offset = np.array([offset[e] for e in samples.entity], dtype=np.int64)
        self._events = np.concatenate([line.rows for line in lines.values()])
        names = entities or samples.entities
        place = {name: code for code, name in enumerate(names)}
        self._entity = np.array([place[e] for e in samples.entity], dtype=np.int64)
        self._clock = query_features(samples)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, picked: list[int]) -> Batch:
        """Return the rows at the given places as one batch."""
        rows = [self.rows[place] for place in picked]
        points, taken = _padded(rows)
        first = np.array([row[0] for row in rows])
        start = self.samples.start[first]
        stop = np.array([self.samples.stop[row].max() for row in rows])
        begin = self._offset[first] + start
        steps = np.arange(int((stop - start).max(initial=0)))
        mask = steps < (stop - start)[:, None]
        events = self._events[np.where(mask, begin[:, None] + steps, 0)]
        arrays = self.samples.arrays
        return Batch(
            **event_tensors(
                values=arrays.values[events],
                stream=arrays.stream[events].astype(np.int64),
                revision=arrays.revision[events].astype(np.int64),
                event_time=arrays.event_time[events],
                available_at=arrays.available_at[events],
                mask=mask,
            ),
            **self._point_tensors(points, taken, start),
        )

    def batches(self, batch_size: int) -> Iterator[Batch]:
        """Yield all rows in order, at least `batch_size` points to a batch."""
        for picked in PointSampler(self.rows, batch_size, seed=None):
            yield self[picked]

    def _point_tensors(
        self,
        points: Int64[np.ndarray, "B P"],
        taken: Int64[np.ndarray, "B P"],
        start: Int64[np.ndarray, " B"],
    ) -> dict[str, Tensor]:
        samples = self.samples
        return {
            "stop": torch.from_numpy(samples.stop[taken] - start[:, None]),
            "entity": torch.from_numpy(self._entity[taken]),
            "clock": torch.from_numpy(self._clock[taken]),
            "scale": torch.from_numpy(samples.scale[taken].astype(np.float32)),
            "target": torch.from_numpy(samples.target[taken].astype(np.float32)),
            "point": torch.from_numpy(points),
        }


class PointSampler(Sampler[list[int]]):
    """Groups rows into batches of at least `batch_size` points.

    With a seed the order is shuffled anew for each epoch, the same for every
    forecaster; without one it is that of the rows.
    """

    def __init__(
        self, rows: list[np.ndarray], batch_size: int, *, seed: int | None
    ) -> None:
        self._sizes = [len(row) for row in rows]
        self._batch_size = batch_size
        self._generator = None if seed is None else np.random.default_rng(seed)

    def __iter__(self) -> Iterator[list[int]]:
        order = np.arange(len(self._sizes))
        if self._generator is not None:
            self._generator.shuffle(order)
        group: list[int] = []
        points = 0
        for place in order.tolist():
            group.append(place)
            points += self._sizes[place]
            if points >= self._batch_size:
                yield group
                group, points = [], 0
        if group:
            yield group


class InformationSets(pl.LightningDataModule):
    """Training and validation batches of one fold; a test loader does not exist here.

    Parameters
    ----------
    train, validation : Samples
        Scaled, with targets; rows without a defined target are left out.
    entities : tuple of str
        In the order in which the network numbers them.
    batch_size : int
        Forecast points per batch, at least.
    seed : int
        Of the training order.

    Raises
    ------
    ValueError
        If a span has no defined target.
    """

    def __init__(
        self,
        train: Samples,
        validation: Samples,
        *,
        entities: tuple[str, ...],
        batch_size: int,
        seed: int,
    ) -> None:
        super().__init__()
        known = _with_defined_target(train, "training")
        self._train = SampleDataset(known, entities)
        known = _with_defined_target(validation, "validation")
        self._validation = SampleDataset(known, entities)
        self._batch_size = batch_size
        self._seed = seed

    def train_dataloader(self) -> DataLoader[Batch]:
        """Return the shuffled training batches."""
        return self._loader(self._train, seed=self._seed)

    def val_dataloader(self) -> DataLoader[Batch]:
        """Return the validation batches in order of time."""
        return self._loader(self._validation, seed=None)

    def _loader(self, dataset: SampleDataset, *, seed: int | None) -> DataLoader[Batch]:
        sampler = PointSampler(dataset.rows, self._batch_size, seed=seed)
        return DataLoader(dataset, sampler=sampler, batch_size=None)


def _with_defined_target(samples: Samples, span: str) -> Samples:
    defined = np.flatnonzero(np.isfinite(samples.target))
    if not len(defined):
        raise ValueError(
            f"the {span} span must hold a defined target; got none in {len(samples)} "
            f"rows. Lengthen it: folds.{span.removesuffix('ing')}_size."
        )
    return samples.take(defined)


def _rows(samples: Samples) -> list[np.ndarray]:
    if samples.history.last is not None:
        return list(np.arange(len(samples), dtype=np.int64)[:, None])
    frame = samples.points[["entity"]].assign(start=samples.start)
    groups = frame.groupby(["entity", "start"], sort=True).indices.values()
    rows: list[np.ndarray] = []
    for group in map(np.asarray, groups):
        ordered = group[np.argsort(samples.stop[group], kind="stable")]
        pieces = -(-len(ordered) // _MAX_POINTS_PER_ROW)
        rows.extend(np.array_split(ordered.astype(np.int64), pieces))
    return rows


def _padded(
    rows: list[np.ndarray],
) -> tuple[Int64[np.ndarray, "B P"], Int64[np.ndarray, "B P"]]:
    """Return the points of each row, -1 where it has fewer, and what to read there.

    A row's points are ordered by `stop`, so the padding repeats the last one.
    """
    width = max(len(row) for row in rows)
    points = np.full((len(rows), width), -1, dtype=np.int64)
    taken = np.zeros((len(rows), width), dtype=np.int64)
    for place, row in enumerate(rows):
        points[place, : len(row)] = row
        taken[place, : len(row)] = row
        taken[place, len(row) :] = row[-1]
    return points, taken


def event_tensors(
    *,
    values: Float64[np.ndarray, "B T W"],
    stream: Int64[np.ndarray, "B T"],
    revision: Int64[np.ndarray, "B T"],
    event_time: Int64[np.ndarray, "B T"],
    available_at: Int64[np.ndarray, "B T"],
    mask: Bool[np.ndarray, "B T"],
) -> dict[str, Tensor]:
    """Return the per-event tensors of a `Batch`; hidden events read as zeros.

    The only place where events become tensors: batches and streams share it. The
    first event of a slice has no event before it, whatever the timeline holds there.
    """
    elapsed = np.zeros(stream.shape)
    elapsed[:, 1:] = np.diff(available_at, axis=1) / NS_PER_DAY
    lag = (available_at - event_time) / NS_PER_DAY
    present = np.isfinite(values) & mask[..., None]
    return {
        "values": torch.from_numpy(np.where(present, values, 0.0).astype(np.float32)),
        "present": torch.from_numpy(present),
        "stream": torch.from_numpy(np.where(mask, stream, 0)),
        "revision": _hidden_as_zero(revision, mask),
        "elapsed_days": _hidden_as_zero(elapsed, mask),
        "lag_days": _hidden_as_zero(lag, mask),
        "mask": torch.from_numpy(mask),
    }


def _hidden_as_zero(column: np.ndarray, mask: np.ndarray) -> Tensor:
    return torch.from_numpy(np.where(mask, column, 0).astype(np.float32))
