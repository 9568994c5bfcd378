"""The suite as it is asked for on the command line: lists such as ``64,1024``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from infoset.models.stream_making import ChosenBackend

from .plan import BACKENDS, LatencyPlan, full_plan


@dataclass(frozen=True)
class Asked:
    """Options of `infoset latency`; see `LatencyPlan`.

    Attributes
    ----------
    lengths, threads, entities, instances : str
        Whole numbers apart by commas.
    forecasts : int
    seconds, limit_us : float
    rate : float or None
    backends : str or None
        Names apart by commas; None = torch and numba.
    """

    lengths: str
    forecasts: int
    seconds: float
    rate: float | None
    limit_us: float
    threads: str
    entities: str
    instances: str
    backends: str | None

    def plan(self, scored_length: int) -> LatencyPlan:
        """Return the plan; the scored length is measured in any case.

        Raises
        ------
        ValueError
            If an option cannot be understood or is out of range.
        """
        return full_plan(
            scored_length=scored_length,
            lengths=_whole_numbers(self.lengths, "--lengths"),
            num_forecasts=self.forecasts,
            seconds=self.seconds,
            backends=_backends(self.backends),
            threads=_whole_numbers(self.threads, "--threads"),
            entities=_whole_numbers(self.entities, "--entities"),
            instances=_whole_numbers(self.instances, "--instances"),
            rate_hz=self.rate,
            limit_us=self.limit_us,
        )


def _whole_numbers(text: str, option: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise ValueError(
            f"{option} must be whole numbers apart by commas, such as 64,1024; got "
            f"{text!r}. Correct it."
        ) from error


def _backends(text: str | None) -> tuple[ChosenBackend, ...]:
    if text is None:
        return BACKENDS
    names = [part.strip() for part in text.split(",")]
    known: tuple[ChosenBackend, ...] = get_args(ChosenBackend)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(
            f"--backends must be of {', '.join(known)}; got {', '.join(unknown)}. "
            "Correct it, or leave it out."
        )
    return tuple(name for name in known if name in names)
