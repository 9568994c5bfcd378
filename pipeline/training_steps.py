"""Which step's weights each fit kept: where it is step 0, nothing was learned."""

from __future__ import annotations

from collections.abc import Sequence

from .task_store import StoredTask


def training_records(stored: Sequence[StoredTask]) -> list[dict[str, object]]:
    """Return what `run.json` says of each fit that trains by steps.

    Returns
    -------
    list of dict
        forecaster, history, fold, seed; kept_step, the first with the lowest validation
        loss; last_step, where training ended; start_loss and kept_loss, the validation
        losses before the first step and at the kept one.
    """
    return [
        {
            "forecaster": result.task.forecaster,
            "history": str(result.task.history),
            "fold": result.task.fold,
            "seed": result.task.seed,
            "kept_step": kept,
            "last_step": result.curve[-1][0],
            "start_loss": result.curve[0][1],
            "kept_loss": loss,
        }
        for result in stored
        if result.curve
        for kept, loss in [min(result.curve, key=lambda point: point[1])]
    ]
