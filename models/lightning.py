"""The thin Lightning shell: loss, optimiser, and keeping the best weights."""

from __future__ import annotations

import math

import pytorch_lightning as pl
import torch
from jaxtyping import Float
from pytorch_lightning.utilities.types import OptimizerLRSchedulerConfig
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR

from infoset.data.module import Batch

from .heads import pinball_loss
from .network import Network


class ForecasterModule(pl.LightningModule):
    """Train a `Network` on the pinball loss of the scaled target.

    Parameters
    ----------
    network : Network
    levels : tuple of float
    learning_rate, weight_decay : float
        Of AdamW.
    num_steps : int
        Over which the learning rate warms up (a tenth) and falls to zero as a cosine.
    """

    def __init__(
        self,
        network: Network,
        levels: tuple[float, ...],
        *,
        learning_rate: float,
        weight_decay: float,
        num_steps: int,
    ) -> None:
        super().__init__()
        self.network = network
        self._levels = levels
        self._learning_rate = learning_rate
        self._weight_decay = weight_decay
        self._num_steps = num_steps

    def training_step(self, batch: Batch, _index: int) -> Tensor:
        """Return the mean loss over the batch's points."""
        loss = self._losses(batch).mean()
        self.log("train_loss", loss, batch_size=1)
        return loss

    def validation_step(self, batch: Batch, _index: int) -> None:
        """Log the mean loss, weighted by the number of points of each batch."""
        losses = self._losses(batch)
        self.log("validation_loss", losses.mean(), batch_size=len(losses))

    def configure_optimizers(self) -> OptimizerLRSchedulerConfig:
        """Return AdamW; decay is for matrices, not for biases, norms or rates."""
        matrices = [p for p in self.parameters() if p.ndim > 1]
        others = [p for p in self.parameters() if p.ndim <= 1]
        optimiser = torch.optim.AdamW(
            [
                {"params": matrices, "weight_decay": self._weight_decay},
                {"params": others, "weight_decay": 0.0},
            ],
            lr=self._learning_rate,
        )
        schedule = LambdaLR(optimiser, self._rate)
        return {
            "optimizer": optimiser,
            "lr_scheduler": {"scheduler": schedule, "interval": "step"},
        }

    def _rate(self, step: int) -> float:
        warm_up = max(1, self._num_steps // 10)
        if step < warm_up:
            return (step + 1) / warm_up
        done = min(1.0, (step - warm_up) / max(1, self._num_steps - warm_up))
        return 0.5 * (1 + math.cos(math.pi * done))

    def _losses(self, batch: Batch) -> Float[Tensor, " n"]:
        quantiles = self.network(batch)
        real = batch.point >= 0
        target = (batch.target / batch.scale)[real]
        levels = torch.tensor(self._levels, device=target.device)
        return pinball_loss(target, quantiles[real], levels)


class BestWeights(pl.Callback):
    """Keep the weights with the lowest validation loss, the initial ones included.

    The initial weights are the scaled-quantile baseline: where training does not help
    on the validation span, they are what comes out.

    Attributes
    ----------
    curve : list of (step, validation loss)
    """

    def __init__(self, patience: int) -> None:
        self.curve: list[tuple[int, float]] = []
        self._patience = patience
        self._best = math.inf
        self._waited = 0
        self._weights: dict[str, Tensor] = {}

    def on_validation_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule
    ) -> None:
        """Compare, copy, and stop after `patience` checks without a gain."""
        loss = float(trainer.callback_metrics["validation_loss"])
        self.curve.append((trainer.global_step, loss))
        if loss < self._best:
            self._best, self._waited = loss, 0
            self._weights = {
                name: weight.detach().clone()
                for name, weight in pl_module.state_dict().items()
            }
            return
        self._waited += 1
        if self._waited >= self._patience:
            trainer.should_stop = True

    @property
    def step(self) -> int:
        """Step of the kept weights."""
        return min(self.curve, key=lambda point: point[1])[0] if self.curve else 0

    def restore(self, module: pl.LightningModule) -> None:
        """Put the kept weights back."""
        if self._weights:
            module.load_state_dict(self._weights)
