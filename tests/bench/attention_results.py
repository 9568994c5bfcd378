"""What one run of the attention benchmark has measured."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from attention_cells import Cell, share_of_floor
from in_turn import Seconds


@dataclass
class Results:
    """All measurements, filled in as they come.

    Attributes
    ----------
    cells : dict
        Seconds of each form in each cell.
    memory : dict
        Peak memory above inputs of a form in a cell, in MB; None = not measurable.
    training_steps : dict
        Seconds of a step of the linear and the softmax layers, by number of events.
    """

    cells: dict[Cell, dict[str, Seconds]] = field(default_factory=dict)
    memory: dict[tuple[Cell, str], float | None] = field(default_factory=dict)
    training_steps: dict[int, dict[str, Seconds]] = field(default_factory=dict)

    @property
    def unrest(self) -> float:
        """Median over least time of the matrix product, in the cell where it is largest.

        Near one on an idle machine.
        """
        products = [seconds["gemm"] for seconds in self.cells.values()]
        return max(product.median / product.least for product in products)

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain lists and dictionaries."""
        return {
            "unrest": self.unrest,
            "cells": [
                {
                    **asdict(cell),
                    "seconds": _plain(seconds),
                    "share_of_floor": share_of_floor(cell, seconds, "mapped"),
                }
                for cell, seconds in self.cells.items()
            ],
            "memory": [
                {**asdict(cell), "form": form, "peak_megabytes": peak}
                for (cell, form), peak in self.memory.items()
            ],
            "training_steps": [
                {"num_events": num_events, "seconds": _plain(seconds)}
                for num_events, seconds in self.training_steps.items()
            ],
        }


def _plain(seconds: dict[str, Seconds]) -> dict[str, dict[str, float]]:
    return {form: asdict(taken) for form, taken in seconds.items()}
