"""Training for a fixed number of steps: no early stopping, no schedule."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from infoset.data.module import Batch, InformationSets, SampleDataset
from infoset.data.sequences import Samples
from infoset.models.attention_forecaster import AttentionForecaster
from infoset.models.heads import pinball_loss
from infoset.models.lightning import ForecasterModule
from infoset.models.settings import Training

from .attention_calls import trained_network


def untrained(
    forecaster: AttentionForecaster, train: Samples, validation: Samples
) -> AttentionForecaster:
    """Give a new forecaster its initial weights, those of a run with the same seed."""
    wanted = forecaster.training
    # A fit keeps the weights with the lowest validation loss it has seen. One step that
    # is not looked at leaves the initial ones.
    forecaster.training = wanted.model_copy(update={"max_steps": 1, "check_every": 2})
    forecaster.fit(train, validation)
    forecaster.training = wanted
    return forecaster


def train_steps(
    forecaster: AttentionForecaster,
    train: Samples,
    validation: Samples,
    *,
    num_steps: int,
    seed: int,
    rows_at_once: int | None = None,
    with_dropout: bool = True,
) -> None:
    """Train in place on the pinball loss of the scaled target, and stop.

    The optimiser, its learning rate, the batch size and the largest gradient are those
    of the forecaster's `training`; the rate stays as it is.

    Parameters
    ----------
    forecaster : AttentionForecaster
        With a network.
    train, validation : Samples
        Of a fold, scaled; only the first is learned from.
    num_steps : int
    seed : int
        Of the dropout and of the order of the data.
    rows_at_once : int, optional
        Gradients of so many rows are added up until a batch is full, for networks
        whose features would not fit into the processor's cache; None = a whole batch.
    with_dropout : bool
    """
    settings, network = forecaster.training, trained_network(forecaster)
    at_once = min(rows_at_once or settings.batch_size, settings.batch_size)
    num_parts = settings.batch_size // at_once
    data = InformationSets(
        train,
        validation,
        entities=forecaster.fitted_on().entities,
        batch_size=at_once,
        seed=seed,
    )
    optimiser = _optimiser(forecaster, settings)
    levels = torch.tensor(forecaster.levels)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network.train(with_dropout)
        batches = _endless(data)
        for _ in range(num_steps):
            optimiser.zero_grad()
            for _ in range(num_parts):
                loss = _losses(network, next(batches), levels).mean() / num_parts
                loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), settings.gradient_clip)
            optimiser.step()
        network.eval()


def mean_loss(forecaster: AttentionForecaster, samples: Samples) -> float:
    """Return the mean pinball loss of the scaled target; rows without one are left out."""
    defined = samples.take(np.flatnonzero(np.isfinite(samples.target)))
    dataset = SampleDataset(defined, forecaster.fitted_on().entities)
    levels = torch.tensor(forecaster.levels)
    network = trained_network(forecaster).eval()
    with torch.inference_mode():
        batches = dataset.batches(2 * forecaster.training.batch_size)
        losses = torch.cat([_losses(network, batch, levels) for batch in batches])
    return float(losses.double().mean())


def _optimiser(
    forecaster: AttentionForecaster, settings: Training
) -> torch.optim.Optimizer:
    module = ForecasterModule(
        trained_network(forecaster),
        forecaster.levels,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        num_steps=settings.max_steps,
    )
    optimiser = module.configure_optimizers()["optimizer"]
    for group in optimiser.param_groups:
        group["lr"] = settings.learning_rate  # the schedule has set its own start
    return optimiser


def _endless(data: InformationSets) -> Iterator[Batch]:
    loader = data.train_dataloader()
    while True:
        yield from loader


def _losses(
    network: nn.Module, batch: Batch, levels: Float[Tensor, " Q"]
) -> Float[Tensor, " n"]:
    real = batch.point >= 0
    target = (batch.target / batch.scale)[real]
    return pinball_loss(target, network(batch)[real], levels)
