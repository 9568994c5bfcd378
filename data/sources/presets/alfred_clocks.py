"""What a file of ALFRED or FRED leaves open about time, and its declaration."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Tag, model_validator

from infoset.data.sources.clock_settings import Day
from infoset.data.sources.declared_clocks import (
    AfterDays,
    AfterLag,
    AfterSessions,
    entry,
)
from infoset.data.strict import Strict

Frequency = Literal["daily", "weekly", "monthly", "quarterly", "semiannual", "annual"]
# FRED dates a longer period by its first day.
PERIODS: dict[str, Literal["month", "quarter", "half_year", "year"]] = {
    "monthly": "month",
    "quarterly": "quarter",
    "semiannual": "half_year",
    "annual": "year",
}
STEP_DAYS = {
    "daily": (1, 4),
    "weekly": (5, 20),
    "monthly": (28, 31),
    "quarterly": (89, 92),
    "semiannual": (181, 184),
    "annual": (365, 366),
}


class Span(Strict):
    """The periods from one date to another, both included."""

    first: Day
    last: Day

    @model_validator(mode="after")
    def _in_order(self) -> Span:
        if self.first > self.last:
            raise ValueError(
                f"must not have `first` after `last`; got {self.first} > {self.last}"
            )
        return self


def _schedule(given: Any) -> str | None:  # noqa: ANN401 (any YAML value)
    for key in ("sessions", "days", "lag"):
        if entry(given, key) is not None:
            return key
    return None


Schedule = Annotated[
    Annotated[AfterSessions, Tag("sessions")]
    | Annotated[AfterDays, Tag("days")]
    | Annotated[AfterLag, Tag("lag")],
    Discriminator(
        _schedule,
        custom_error_type="schedule",
        custom_error_message="a mapping with `sessions`, `days` or `lag`",
    ),
]
