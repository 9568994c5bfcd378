"""The causal attention forecasters: linear and softmax, alike but for the kernel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from infoset.data.module import InformationSets, SampleDataset
from infoset.data.sequences import CausalScale, Samples, own_change_channel
from infoset.data.timeline import History

from .attention import feature_map
from .baselines import entity_quantiles
from .embedding import ChannelStatistics
from .forecasts import LEVELS, Forecasts
from .kernels import AttentionKernel, LinearKernel, SoftmaxKernel
from .network import Network
from .settings import NetworkSize, Training
from .streaming import StateStream, Stream, StreamScale, WindowStream
from .training import FitRecord, fit_network

Attention = Literal["linear", "softmax"]
_WEIGHTS, _SPEC = "weights.safetensors", "network.json"


class AttentionForecaster:
    """Quantile forecasts by a causal attention network over the events.

    Parameters
    ----------
    attention : {'linear', 'softmax'}
    feature_map_name : str
        Of the linear attention; softmax has none.
    size : NetworkSize
    training : Training
    seed : int
        Of the initial weights, the dropout and the order of the data: the same for
        both kinds of attention.
    levels : tuple of float
    """

    def __init__(
        self,
        attention: Attention,
        *,
        feature_map_name: str = "elu1",
        size: NetworkSize | None = None,
        training: Training | None = None,
        seed: int = 0,
        levels: tuple[float, ...] = LEVELS,
    ) -> None:
        self.attention: Attention = attention
        self.feature_map_name = feature_map_name
        self.size = size or NetworkSize()
        self.training = training or Training()
        self.seed = seed
        self.levels = levels
        self.network: Network | None = None
        self.record: FitRecord | None = None
        self.entities: tuple[str, ...] = ()
        self._statistics: ChannelStatistics | None = None

    def fit(self, train: Samples, validation: Samples) -> None:
        """Start from the scaled-quantile baseline and train with early stopping."""
        base = entity_quantiles([train], [train.scaled_target], self.levels)
        log_scale = [
            float(np.log(train.scale[train.entity == name]).mean())
            for name in train.entities
        ]
        data = InformationSets(
            train, validation, batch_size=self.training.batch_size, seed=self.seed
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self._build(
                ChannelStatistics.fit(train),
                train.entities,
                base=np.stack([base[name] for name in train.entities]),
                log_scale=np.array(log_scale),
            )
            self.record = fit_network(
                self._trained(), data, self.training, levels=self.levels
            )

    def forecast(self, samples: Samples) -> Forecasts:
        """Forecast every sample from its information set."""
        network = self._trained().eval()
        scaled = np.empty((len(samples), len(self.levels)))
        dataset = SampleDataset(samples)
        with torch.inference_mode():
            for batch in dataset.batches(2 * self.training.batch_size):
                real = batch.point >= 0
                quantiles = network(batch)[real].to(torch.float64)
                scaled[batch.point[real].numpy()] = quantiles.numpy()
        return Forecasts(scaled * samples.scale[:, None], self.levels)

    def stream(
        self, samples: Samples, entity: str, scale: CausalScale, *, history: History
    ) -> Stream:
        """Return a live forecaster of one entity, without any event yet.

        Parameters
        ----------
        samples : Samples
            Of the log that the feed continues: names the streams and channels.
        entity : str
        scale : CausalScale
            As fitted on the fold's training span.
        history : History
            `last n` encodes its window anew for each forecast; `all` and `since`
            carry the state.
        """
        target = samples.targets[entity]
        channel = own_change_channel(samples.arrays, target)
        stream_scale = StreamScale(
            channel, target.scale, scale.decay, scale.prior[entity], scale.prior_weight
        )
        place = self.entities.index(entity)
        width = samples.arrays.values.shape[1]
        network = self._trained()
        if history.last is not None:
            return WindowStream(
                network,
                self.levels,
                entity=place,
                scale=stream_scale,
                width=width,
                last=history.last,
            )
        return StateStream(
            network,
            self.levels,
            entity=place,
            scale=stream_scale,
            width=width,
            history=history,
        )

    def save(self, folder: Path) -> None:
        """Write the weights (safetensors) and the network's description (JSON)."""
        folder.mkdir(parents=True, exist_ok=True)
        statistics = self._fitted_statistics()
        spec = {
            "attention": self.attention,
            "feature_map": self.feature_map_name,
            "size": self.size.model_dump(),
            "training": self.training.model_dump(),
            "seed": self.seed,
            "levels": list(self.levels),
            "entities": list(self.entities),
            "streams": list(statistics.streams),
            "channels": [list(channel) for channel in statistics.channels],
        }
        (folder / _SPEC).write_text(json.dumps(spec, indent=1))
        weights = {k: v.contiguous() for k, v in self._trained().state_dict().items()}
        save_file(weights, folder / _WEIGHTS)

    @classmethod
    def load(cls, folder: Path) -> AttentionForecaster:
        """Read what `save` wrote; nothing is unpickled."""
        spec = json.loads((folder / _SPEC).read_text())
        forecaster = cls(
            spec["attention"],
            feature_map_name=spec["feature_map"],
            size=NetworkSize(**spec["size"]),
            training=Training(**spec["training"]),
            seed=spec["seed"],
            levels=tuple(spec["levels"]),
        )
        num_channels, num_streams = len(spec["channels"]), len(spec["streams"])
        blank = ChannelStatistics(
            channels=tuple((stream, column) for stream, column in spec["channels"]),
            streams=tuple(spec["streams"]),
            offset=np.zeros(num_streams, np.int64),
            num_values=np.zeros(num_streams, np.int64),
            mean=np.zeros(num_channels, np.float32),
            deviation=np.ones(num_channels, np.float32),
            used=np.zeros(num_channels, bool),
        )
        entities = tuple(spec["entities"])
        forecaster._build(
            blank,
            entities,
            base=np.zeros((len(entities), len(forecaster.levels))),
            log_scale=np.zeros(len(entities)),
        )
        forecaster._trained().load_state_dict(load_file(folder / _WEIGHTS))
        return forecaster

    def _build(
        self,
        statistics: ChannelStatistics,
        entities: tuple[str, ...],
        *,
        base: np.ndarray,
        log_scale: np.ndarray,
    ) -> None:
        self._statistics = statistics
        self.entities = entities
        self.network = Network(
            self._kernel(),
            self.size,
            statistics,
            base=torch.from_numpy(base.astype(np.float32)),
            log_scale=torch.from_numpy(log_scale.astype(np.float32)),
        )

    def _kernel(self) -> AttentionKernel:
        if self.attention == "softmax":
            return SoftmaxKernel()
        return LinearKernel(feature_map(self.feature_map_name))

    def _trained(self) -> Network:
        if self.network is None:
            raise ValueError("the forecaster must be fitted first. Call `fit`.")
        return self.network

    def _fitted_statistics(self) -> ChannelStatistics:
        if self._statistics is None:
            raise ValueError("the forecaster must be fitted first. Call `fit`.")
        return self._statistics
