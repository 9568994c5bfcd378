"""What a latency suite measures: every combination of what is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from infoset.models.stream_making import ChosenBackend

from .closed_loop import LoopLimits
from .percentiles import FEWEST_FOR_P99_9

Arrivals = Literal["poisson", "recorded"]
BACKENDS: tuple[ChosenBackend, ...] = ("torch", "numba")
FULL_LENGTHS = (64, 256, 1024, 4096, 16_384, 65_536)
_SHORT_SECONDS, _SHORT_FEWEST = 2.0, 20
_FULL_SECONDS, _FULL_FEWEST = 60.0, 3


@dataclass(frozen=True)
class LatencyPlan:
    """What to measure, and for how long.

    Attributes
    ----------
    form : {'short', 'full'}
        `short` is part of every run, `full` is that of `infoset latency`.
    lengths : tuple of int
        Events of history, ascending.
    scored_length : int
        The length at which the open loops run: that of the scores.
    limits : LoopLimits
        Of each loop.
    backends : tuple of {'auto', 'torch', 'numba'}
    threads, entities, instances : tuple of int
        Threads of torch; streams that take turns; processes side by side.
    arrivals : tuple of {'poisson', 'recorded'}
        Of the open loops.
    rate_hz : float or None
        Requests a second; by default half of what the slowest forecaster of a backend
        can do.
    limit_us : float or None
        Limit of p99 for the throughput; None measures none.
    continues : bool
        Whether a tape is repeated, with later clocks, for histories longer than it.
    num_checked : int
        Forecasts that are compared with float64, per combination.
    """

    form: Literal["short", "full"]
    lengths: tuple[int, ...]
    scored_length: int
    limits: LoopLimits
    backends: tuple[ChosenBackend, ...] = ("auto",)
    threads: tuple[int, ...] = (1,)
    entities: tuple[int, ...] = (1,)
    instances: tuple[int, ...] = (1,)
    arrivals: tuple[Arrivals, ...] = ("poisson",)
    rate_hz: float | None = None
    limit_us: float | None = None
    continues: bool = False
    num_checked: int = 1

    def __post_init__(self) -> None:
        for name in ("lengths", "threads", "entities", "instances"):
            values: tuple[int, ...] = getattr(self, name)
            if not values or min(values) < 1:
                raise ValueError(
                    f"{name} must be whole numbers of at least 1; got "
                    f"{', '.join(map(str, values)) or 'none'}. Correct --{name}."
                )
        for name in ("rate_hz", "limit_us"):
            value: float | None = getattr(self, name)
            if value is not None and not value > 0:
                option = name.replace("_hz", "").replace("_", "-")
                raise ValueError(
                    f"{option} must be above 0; got {value}. Correct --{option}."
                )

    @property
    def num_turns(self) -> int:
        """Requests of a loop, at most, those to warm up included."""
        return self.limits.num_warm_up + self.limits.num_forecasts


def short_plan(
    lengths: tuple[int, ...],
    *,
    scored_length: int,
    num_forecasts: int,
    num_warm_up: int,
) -> LatencyPlan:
    """Return what is measured in every run: seconds, at lengths that are there."""
    return LatencyPlan(
        form="short",
        lengths=tuple(sorted({*lengths, scored_length})),
        scored_length=scored_length,
        limits=LoopLimits(
            num_forecasts,
            num_warm_up,
            _SHORT_SECONDS,
            min(_SHORT_FEWEST, num_forecasts),
        ),
    )


def full_plan(
    *,
    scored_length: int,
    lengths: tuple[int, ...] = FULL_LENGTHS,
    num_forecasts: int = FEWEST_FOR_P99_9,
    num_warm_up: int = 20,
    seconds: float = _FULL_SECONDS,
    backends: tuple[ChosenBackend, ...] = BACKENDS,
    threads: tuple[int, ...] = (1,),
    entities: tuple[int, ...] = (1,),
    instances: tuple[int, ...] = (1,),
    rate_hz: float | None = None,
    limit_us: float = 10_000.0,
) -> LatencyPlan:
    """Return what `infoset latency` measures, with its defaults.

    One thread, one stream and one process are measured in any case: with them others
    are compared.

    Raises
    ------
    ValueError
        If a number is out of range.
    """
    if num_forecasts < 10 or not seconds > 0:
        raise ValueError(
            "forecasts must be at least 10 and seconds above 0; got "
            f"{num_forecasts} and {seconds:g}. Correct --forecasts or --seconds."
        )
    return LatencyPlan(
        form="full",
        lengths=tuple(sorted({*lengths, scored_length})),
        scored_length=scored_length,
        limits=LoopLimits(num_forecasts, num_warm_up, seconds, _FULL_FEWEST),
        backends=backends,
        threads=tuple(sorted({1, *threads})),
        entities=tuple(sorted({1, *entities})),
        instances=tuple(sorted({1, *instances})),
        arrivals=("poisson", "recorded"),
        rate_hz=rate_hz,
        limit_us=limit_us,
        continues=True,
        num_checked=3,
    )
