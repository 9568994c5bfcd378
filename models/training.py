"""Fitting a network with Lightning, quietly and reproducibly."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import pytorch_lightning as pl

from infoset.data.module import InformationSets

from .attention import NonFiniteError
from .attention_checks import check_attention
from .lightning import BestWeights, ForecasterModule
from .network import Network
from .settings import Training


@dataclass(frozen=True)
class FitRecord:
    """What happened during a fit.

    Attributes
    ----------
    validation_curve : tuple of (step, loss)
        The first point is the untrained network.
    best_step : int
        Whose weights were kept.
    """

    validation_curve: tuple[tuple[int, float], ...]
    best_step: int


def fit_network(
    network: Network,
    data: InformationSets,
    training: Training,
    *,
    levels: tuple[float, ...],
) -> FitRecord:
    """Train in place; the weights of the best validation loss remain.

    Raises
    ------
    NonFiniteError
        If the validation loss is not a number.
    """
    module = ForecasterModule(
        network,
        levels,
        learning_rate=training.learning_rate,
        weight_decay=training.weight_decay,
        num_steps=training.max_steps,
    )
    best = BestWeights(training.patience)
    with _quiet_lightning():
        trainer = pl.Trainer(
            accelerator="cpu",
            max_steps=training.max_steps,
            val_check_interval=training.check_every,
            check_val_every_n_epoch=None,
            gradient_clip_val=training.gradient_clip,
            callbacks=[best],
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            num_sanity_val_steps=0,
        )
        trainer.validate(module, datamodule=data, verbose=False)
        trainer.fit(module, datamodule=data)
    wrong = [step for step, loss in best.curve if not loss < float("inf")]
    if wrong:
        fault = _first_fault(network, data)
        raise NonFiniteError(
            f"the validation loss must be finite; got a non-finite one at step "
            f"{wrong[0]}. Lower training.learning_rate. {fault or ''}".rstrip()
        ) from fault
    best.restore(module)
    network.eval()
    return FitRecord(tuple(best.curve), best.step)


def _first_fault(network: Network, data: InformationSets) -> NonFiniteError | None:
    """Return where, on the validation span, numbers stop being finite."""
    network.eval()
    try:
        for batch in data.val_dataloader():
            check_attention(network, partial(network, batch))
    except NonFiniteError as error:
        return error
    return None


@contextmanager
def _quiet_lightning() -> Iterator[None]:
    logger = logging.getLogger("pytorch_lightning")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            # Batches are slices of arrays in memory: worker processes only cost.
            warnings.filterwarnings("ignore", message=".*does not have many workers.*")
            warnings.filterwarnings("ignore", message=".*LeafSpec.*")
            yield
    finally:
        logger.setLevel(level)
