"""The causal attention forecasters: linear and softmax, alike but for the kernel."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from safetensors.torch import load_file, save, save_file
from torch import Tensor

from infoset.data.module import InformationSets, SampleDataset
from infoset.data.sequences import Samples
from infoset.data.timeline import History

from .attention import feature_map
from .attention_checks import DenominatorRecord, require_finite, watched_denominators
from .baselines import entity_quantiles
from .embedding import ChannelStatistics
from .fast import FastStream, StreamBatch
from .fitted import FittedOn
from .forecasts import LEVELS, Forecasts
from .kernels import AttentionKernel, LinearKernel, SoftmaxKernel
from .network import Network
from .settings import LinearAttention, NetworkSize, Training
from .stream_making import ChosenBackend, make_stream, make_stream_batch
from .stream_snapshot import StreamOrigin, StreamSnapshot
from .streaming import StateStream, Stream, StreamState, WindowStream
from .training import FitRecord, fit_network

Attention = Literal["linear", "softmax"]
WEIGHTS, SPEC = "weights.safetensors", "forecaster.json"


class AttentionForecaster:
    """Quantile forecasts by a causal attention network over the events.

    Parameters
    ----------
    attention : {'linear', 'softmax'}
    linear : LinearAttention
        Settings of the linear attention; softmax has none.
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
        linear: LinearAttention | None = None,
        size: NetworkSize | None = None,
        training: Training | None = None,
        seed: int = 0,
        levels: tuple[float, ...] = LEVELS,
    ) -> None:
        self.attention: Attention = attention
        self.linear = linear or LinearAttention()
        self.size = size or NetworkSize()
        self.training = training or Training()
        self.seed = seed
        self.levels = levels
        self.network: Network | None = None
        self.record: FitRecord | None = None
        self.about: FittedOn | None = None
        self._digest: tuple[tuple[Network, list[int]], str] | None = None

    def fit(self, train: Samples, validation: Samples) -> None:
        """Start from the scaled-quantile baseline and train with early stopping."""
        about = FittedOn.of(train)
        about.require(validation)
        data = InformationSets(
            train,
            validation,
            entities=about.entities,
            batch_size=self.training.batch_size,
            seed=self.seed,
        )
        self.about = about
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self.network = self._build(
                ChannelStatistics.fit(train),
                # As for the baselines, all targets known before the test span. The
                # untrained network then has seen the validation targets, which makes
                # early stopping prefer it: a trained one must be clearly better.
                base=self._base([train, validation]),
            )
            self.record = fit_network(
                self.network, data, self.training, levels=self.levels
            )

    def forecast(self, samples: Samples) -> Forecasts:
        """Forecast every sample from its information set.

        Raises
        ------
        NonFiniteError
            If a forecast is not finite; names the layer, head and position where that
            began.
        """
        network, about = self._trained().eval(), self.fitted_on()
        about.require(samples)
        scaled = np.empty((len(samples), len(self.levels)))
        dataset = SampleDataset(samples, about.entities)
        with torch.inference_mode():
            for batch in dataset.batches(2 * self.training.batch_size):
                real = batch.point >= 0
                quantiles = network(batch)[real].to(torch.float64)
                require_finite(network, quantiles, partial(network, batch))
                scaled[batch.point[real].numpy()] = quantiles.numpy()
        return Forecasts(scaled * samples.scale[:, None], self.levels)

    def denominators(self, samples: Samples) -> DenominatorRecord | None:
        """Return what linear attention divides by on the way to these forecasts.

        None for softmax, whose denominators are at least one.
        """
        if self.attention == "softmax":
            return None
        network, about = self._trained().eval(), self.fitted_on()
        about.require(samples)
        dataset = SampleDataset(samples, about.entities)
        with torch.inference_mode(), watched_denominators(network) as record:
            for batch in dataset.batches(2 * self.training.batch_size):
                network(batch)
        return record

    def stream(
        self,
        entity: str,
        *,
        history: History | None = None,
        backend: ChosenBackend = "auto",
    ) -> Stream:
        """Return a live forecaster of one entity, without any event yet.

        Parameters
        ----------
        entity : str
        history : History, optional
            By default the one it was fitted with. `last n` encodes its window anew
            for each forecast; `all` and `since` carry the state.
        backend : {'auto', 'torch', 'numba'}
            What computes. `auto` = numba where it can (see `unserved`), torch
            otherwise; `Stream.backend` says which.

        Raises
        ------
        ValueError
            If the forecaster was not fitted for the entity, or numba is asked for what
            it cannot do.
        """
        about = self.fitted_on()
        origin = StreamOrigin(self.model_digest(), entity, history or about.history)
        return make_stream(
            self._trained(), about, self.levels, origin=origin, backend=backend
        )

    def stream_batch(
        self, entities: Sequence[str], *, history: History | None = None
    ) -> StreamBatch:
        """Return the live forecasters of many entities, which tick together.

        Parameters
        ----------
        entities : sequence of str
            Each once.
        history : History, optional
            `all` or `since`; by default the one it was fitted with.

        Raises
        ------
        ValueError
            If the forecaster was not fitted for one of them, or cannot be batched: its
            attention must be linear and known to numba.
        """
        about = self.fitted_on()
        return make_stream_batch(
            self._trained(),
            about,
            self.levels,
            entities=entities,
            history=history or about.history,
        )

    def restore(
        self, snapshot: StreamSnapshot, *, backend: ChosenBackend = "auto"
    ) -> Stream:
        """Return a stream that goes on from a snapshot, whatever backend made it.

        Raises
        ------
        ValueError
            If another model made the snapshot.
        """
        snapshot.require_model(self.model_digest())
        origin = snapshot.origin
        stream = self.stream(origin.entity, history=origin.history, backend=backend)
        if isinstance(stream, WindowStream):
            stream.window.load_state_dict(snapshot.tensors)
        elif isinstance(stream, StateStream | FastStream):
            stream.state = StreamState.restored(snapshot)
        return stream

    def model_digest(self) -> str:
        """Return 64 hexadecimal digits that another description or weight changes.

        Raises
        ------
        ValueError
            Before a fit.
        """
        weights = self._weights()
        # Each stream asks; torch counts how often a tensor was changed in place.
        now = self._trained(), [x._version for x in weights.values()]  # noqa: SLF001
        if self._digest is None or self._digest[0] != now:
            digest = sha256(self._spec().encode() + save(weights)).hexdigest()
            self._digest = now, digest
        return self._digest[1]

    def save(self, folder: Path) -> None:
        """Write the weights (safetensors) and the forecaster's description (JSON)."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SPEC).write_text(self._spec())
        save_file(self._weights(), folder / WEIGHTS)

    @classmethod
    def load(cls, folder: Path) -> AttentionForecaster:
        """Read what `save` wrote; nothing is unpickled."""
        return cls.from_files(folder / SPEC, folder / WEIGHTS)

    @classmethod
    def from_files(cls, spec_path: Path, weights_path: Path) -> AttentionForecaster:
        """Read a description and its weights."""
        spec = json.loads(spec_path.read_text())
        forecaster = cls(
            spec["attention"],
            linear=LinearAttention(**spec["linear"]),
            size=NetworkSize(**spec["size"]),
            training=Training(**spec["training"]),
            seed=spec["seed"],
            levels=tuple(spec["levels"]),
        )
        about = FittedOn.model_validate(spec["fitted_on"])
        forecaster.about = about
        forecaster.network = forecaster._build(
            ChannelStatistics.blank(about.channels, about.streams),
            base=np.zeros((len(about.entities), len(forecaster.levels)), np.float32),
        )
        forecaster.network.load_state_dict(load_file(weights_path))
        return forecaster

    def _spec(self) -> str:
        spec = {
            "attention": self.attention,
            "linear": self.linear.model_dump(),
            "size": self.size.model_dump(),
            "training": self.training.model_dump(),
            "seed": self.seed,
            "levels": list(self.levels),
            "fitted_on": self.fitted_on().model_dump(mode="json"),
        }
        return json.dumps(spec, indent=1)

    def _weights(self) -> dict[str, Tensor]:
        return {k: v.contiguous() for k, v in self._trained().state_dict().items()}

    def _base(self, parts: list[Samples]) -> np.ndarray:
        """Return the quantiles of the scaled targets per entity."""
        found = entity_quantiles(parts, [p.scaled_target for p in parts], self.levels)
        rows = [found[name] for name in self.fitted_on().entities]
        return np.stack(rows).astype(np.float32)

    def _build(self, statistics: ChannelStatistics, *, base: np.ndarray) -> Network:
        return Network(
            self._kernels(),
            self.size,
            statistics,
            base=torch.from_numpy(base),
        )

    def _kernels(self) -> list[AttentionKernel]:
        """Return the attention of each layer and of the readout."""
        count = self.size.num_layers + 1
        if self.attention == "softmax":
            return [SoftmaxKernel() for _ in range(count)]
        # Random features have a seed of their own: no other weight changes with them.
        seeds = np.random.SeedSequence(self.seed).generate_state(count)
        return [
            LinearKernel(
                feature_map(
                    self.linear.feature_map,
                    width=self.size.width // self.size.num_heads,
                    num_heads=self.size.num_heads,
                    num_features=self.linear.num_features,
                    seed=int(seed),
                ),
                floor=self.linear.denominator_floor,
            )
            for seed in seeds
        ]

    def _trained(self) -> Network:
        if self.network is None:
            raise ValueError("the forecaster must be fitted first. Call `fit`.")
        return self.network

    def fitted_on(self) -> FittedOn:
        """Return the vocabulary of the training data.

        Raises
        ------
        ValueError
            Before a fit.
        """
        if self.about is None:
            raise ValueError("the forecaster must be fitted first. Call `fit`.")
        return self.about
