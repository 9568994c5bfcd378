"""Events as vectors: the values, the stream, and the event's own clocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Int64
from torch import Tensor, nn

from infoset.data.module import Batch
from infoset.data.sequences import Samples

_NUM_CLOCKS = 4


@dataclass(frozen=True, eq=False)
class ChannelStatistics:
    """What the training span says about each channel: how to standardise it.

    Attributes
    ----------
    channels : tuple of (stream, column)
        All channels of the log, in its order.
    streams : tuple of str
    offset, num_values : ndarray of shape (streams,)
        First channel and number of channels of each stream.
    mean, deviation : ndarray of shape (channels,)
    used : ndarray of shape (channels,)
        False for levels (their change is read instead) and channels that did not move
        in the training span.
    """

    channels: tuple[tuple[str, str], ...]
    streams: tuple[str, ...]
    offset: Int64[np.ndarray, " s"]
    num_values: Int64[np.ndarray, " s"]
    mean: Float32[np.ndarray, " c"]
    deviation: Float32[np.ndarray, " c"]
    used: Bool[np.ndarray, " c"]

    @classmethod
    def fit(cls, train: Samples) -> ChannelStatistics:
        """Use the events visible at a training forecast time, and no later one."""
        arrays = train.arrays
        seen = [
            line.rows[: int(train.stop[train.entity == name].max(initial=0))]
            for name, line in train.timelines.items()
        ]
        rows = np.unique(np.concatenate(seen))
        mean = np.zeros(len(arrays.channels), dtype=np.float32)
        deviation = np.ones(len(arrays.channels), dtype=np.float32)
        used = np.zeros(len(arrays.channels), dtype=bool)
        for place, (stream, column) in enumerate(arrays.channels):
            mine = rows[arrays.stream[rows] == arrays.stream_code(stream)]
            values = arrays.values[mine, arrays.value_index(stream, column)]
            known = values[np.isfinite(values)]
            # A channel that never moved has no scale on which a move could be read.
            moved = len(known) and known.min() < known.max()
            if moved and (stream, column) not in arrays.levels:
                used[place] = True
                mean[place] = known.mean()
                deviation[place] = known.std()
        return cls(
            channels=arrays.channels,
            streams=arrays.streams,
            offset=arrays.channel_offset,
            num_values=arrays.num_values,
            mean=mean,
            deviation=deviation,
            used=used,
        )

    @classmethod
    def blank(
        cls, channels: tuple[tuple[str, str], ...], streams: tuple[str, ...]
    ) -> ChannelStatistics:
        """Return placeholders of the right shapes, for weights about to be loaded."""
        return cls(
            channels=channels,
            streams=streams,
            offset=np.zeros(len(streams), np.int64),
            num_values=np.zeros(len(streams), np.int64),
            mean=np.zeros(len(channels), np.float32),
            deviation=np.ones(len(channels), np.float32),
            used=np.zeros(len(channels), bool),
        )


class EventEmbedding(nn.Module):
    """Embed each event alone: nothing here looks along the time axis.

    Every channel is one input of a linear layer; an event fills those of its own
    stream and leaves the others zero.

    Parameters
    ----------
    statistics : ChannelStatistics
    width : int
        D.
    """

    offset: Tensor
    num_values: Tensor
    mean: Tensor
    deviation: Tensor
    used: Tensor

    def __init__(self, statistics: ChannelStatistics, width: int) -> None:
        super().__init__()
        num_channels = len(statistics.channels)
        self.register_buffer("offset", torch.from_numpy(statistics.offset))
        self.register_buffer("num_values", torch.from_numpy(statistics.num_values))
        self.register_buffer("mean", torch.from_numpy(statistics.mean))
        self.register_buffer("deviation", torch.from_numpy(statistics.deviation))
        self.register_buffer("used", torch.from_numpy(statistics.used))
        self.channels = nn.Linear(num_channels, width, bias=False)
        self.stream = nn.Embedding(len(statistics.streams), width)
        self.clocks = nn.Linear(_NUM_CLOCKS, width)

    def forward(self, batch: Batch) -> Float[Tensor, "B T D"]:
        """Return one vector per event."""
        embedded: Tensor = (
            self.channels(self._channels(batch))
            + self.stream(batch.stream)
            + self.clocks(_clocks(batch))
        )
        return embedded

    def _channels(self, batch: Batch) -> Float[Tensor, "B T C"]:
        num_channels = len(self.mean)
        place = torch.arange(batch.values.shape[-1], device=batch.values.device)
        channel = self.offset[batch.stream][..., None] + place
        own = (place < self.num_values[batch.stream][..., None]) & batch.present
        channel = torch.where(own, channel, 0)
        own = own & self.used[channel]
        standard = (batch.values - self.mean[channel]) / self.deviation[channel]
        # asinh is linear near zero and logarithmic in the tails: April 2020 payrolls
        # lie 100 standard deviations out and must not drown everything else.
        known = torch.where(own, torch.asinh(standard), 0.0)
        shape = (*batch.stream.shape, num_channels)
        dense = torch.zeros(shape, device=known.device, dtype=known.dtype)
        return dense.scatter_add(-1, channel, known)


def _clocks(batch: Batch) -> Float[Tensor, "B T 4"]:
    lag = batch.lag_days
    missing = 1.0 - batch.present.any(-1).to(lag.dtype)
    return torch.stack(
        [
            torch.log1p(batch.elapsed_days),
            torch.sign(lag) * torch.log1p(lag.abs()),
            torch.log1p(batch.revision),
            missing,
        ],
        dim=-1,
    )
