"""EDGAR's acceptance stamps: they end in Z, but for some filers are New York time.

Nothing in a stamp says which. EDGAR accepts filings from 06:00 to 22:00 New York: the
reading under which the stamps of a filer lie in these hours is the right one. It is a
property of the filer and of the day on which its list was downloaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Bool
from pydantic import Discriminator, Field, Tag

NEW_YORK = "America/New_York"
OPENS, CLOSES = pd.Timedelta("06:00:00"), pd.Timedelta("22:00:00")
HOURS = "06:00 to 22:00 New York"
# Of 808 filers of the S&P 500, 805 have one clock in their whole list: more stray stamps
# than this are no accident. (theOGognf/finagg issue 64, counted in 2026.)
_STRAY_SHARE = 100
_LEAST_OUTSIDE = 3

Reading = Literal["utc", "new_york"]
Cik = Annotated[str, Field(pattern=r"^[0-9]{10}$")]
_SAID: dict[Reading, str] = {"utc": "UTC", "new_york": "New York time"}


def _clock_kind(given: Any) -> str | None:  # noqa: ANN401 (any YAML value)
    if isinstance(given, str):
        return "all"
    return "some" if isinstance(given, Mapping) else None


Clock = Annotated[
    Annotated[Literal["detect", "utc", "new_york"], Tag("all")]
    | Annotated[Mapping[Cik, Reading], Tag("some")],
    Discriminator(
        _clock_kind,
        custom_error_type="clock",
        custom_error_message=(
            "detect, utc, new_york, or a mapping of CIKs of ten digits (in quotes) to "
            "utc or new_york"
        ),
    ),
]


@dataclass(frozen=True)
class StampEvidence:
    """How many acceptance stamps lie in EDGAR's hours, under each reading.

    Attributes
    ----------
    num_stamps, num_utc, num_new_york : int
    """

    num_stamps: int
    num_utc: int
    num_new_york: int

    @property
    def reading(self) -> Reading | None:
        """The one reading that fits; None where both do, or neither."""
        outside_utc = self.num_stamps - self.num_utc
        outside_new_york = self.num_stamps - self.num_new_york
        if self._is_stray(outside_utc) and self._is_clear(outside_new_york):
            return "utc"
        if self._is_stray(outside_new_york) and self._is_clear(outside_utc):
            return "new_york"
        return None

    @property
    def said(self) -> str:
        """The counts, for people."""
        return (
            f"of {self.num_stamps:,} stamps {self.num_utc:,} read as UTC and "
            f"{self.num_new_york:,} read as New York time lie in EDGAR's hours ({HOURS})"
        )

    def _is_stray(self, num_outside: int) -> bool:
        return num_outside <= self.num_stamps // _STRAY_SHARE

    def _is_clear(self, num_outside: int) -> bool:
        return not self._is_stray(num_outside) and num_outside >= _LEAST_OUTSIDE


def new_york_times(stamps: pd.Series, reading: Reading) -> pd.Series:
    """Return naive stamps as naive New York time."""
    if reading == "new_york":
        return stamps
    local: pd.Series = (
        stamps.dt.tz_localize("UTC").dt.tz_convert(NEW_YORK).dt.tz_localize(None)
    )
    return local


def in_hours(stamps: pd.Series, reading: Reading) -> Bool[np.ndarray, " n"]:
    """Return whether each stamp lies in EDGAR's hours; a missing one does not."""
    local = new_york_times(stamps, reading)
    inside: np.ndarray = (
        (local - local.dt.normalize()).between(OPENS, CLOSES).to_numpy()
    )
    return inside


def evidence(stamps: pd.Series) -> StampEvidence:
    """Count what stamps say about their clock."""
    return StampEvidence(
        num_stamps=int(stamps.notna().sum()),
        num_utc=int(in_hours(stamps, "utc").sum()),
        num_new_york=int(in_hours(stamps, "new_york").sum()),
    )


def clock_reading(
    clock: Clock, found: StampEvidence, *, cik: str, name: str
) -> tuple[Reading, str]:
    """Return how to read a filer's stamps, and a notice that says why.

    Parameters
    ----------
    clock : Clock
        As declared; a filer that a mapping leaves out is detected.
    found : StampEvidence
    cik, name : str
        The filer and the file, for messages.

    Raises
    ------
    ValueError
        If it must be detected, and both readings fit or neither does.
    """
    declared = clock.get(cik) if isinstance(clock, Mapping) else _named(clock)
    reading = declared or found.reading
    if reading is None:
        raise ValueError(
            f"clock of filer {cik} must follow from its acceptance stamps in {name}; "
            f"got no single reading: {found.said}. Declare `clock: utc` or "
            f"`clock: new_york`, or {{'{cik}': utc}} for this filer alone."
        )
    why = "found" if declared is None else "declared"
    return reading, (
        f"{name}: acceptance stamps of filer {cik} are {_SAID[reading]} ({why}): "
        f"{found.said}."
    )


def _named(clock: Literal["detect", "utc", "new_york"]) -> Reading | None:
    return None if clock == "detect" else clock


def is_date_only(stamps: pd.Series) -> Bool[np.ndarray, " n"]:
    """Return which stamps are a date alone, written as midnight under either reading."""
    midnight = stamps == stamps.dt.normalize()
    local = new_york_times(stamps, "utc")
    dated: np.ndarray = (midnight | (local == local.dt.normalize())).to_numpy()
    return dated
