"""Business days of the Federal Reserve, as calendars of the `exchange_calendars` kind."""

from __future__ import annotations

from datetime import time
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd
from exchange_calendars import ExchangeCalendar
from exchange_calendars.exchange_calendar import HolidayCalendar
from pandas.tseries.holiday import (
    Holiday,
    USColumbusDay,
    USLaborDay,
    USMartinLutherKingJr,
    USMemorialDay,
    USPresidentsDay,
    USThanksgivingDay,
    nearest_workday,
    sunday_to_monday,
)

# Board of Governors, table K.8: Banks stay open on the Friday before a Saturday
# holiday, the Board closes. The fixed dates below follow the laws in force since 1978.
_FIRST_YEAR = 1978
_FIXED = (
    ("New Year's Day", 1, 1, None),
    ("Juneteenth", 6, 19, "2021-06-18"),
    ("Independence Day", 7, 4, None),
    ("Veterans Day", 11, 11, None),
    ("Christmas Day", 12, 25, None),
)
_MOVING = [
    USMartinLutherKingJr,
    USPresidentsDay,
    USMemorialDay,
    USLaborDay,
    USColumbusDay,
    USThanksgivingDay,
]
# Executive orders that closed the federal departments for a day, and the Board's own
# notices (2008-12-26, Hurricane Sandy, 2014-12-26). Where the Board worked all the
# same, a listed day makes a release known later than it was, never earlier.
_BOARD_CLOSINGS = (
    "2001-12-24",
    "2003-12-26",
    "2004-06-11",
    "2007-01-02",
    "2007-12-24",
    "2008-12-26",
    "2012-10-29",
    "2012-10-30",
    "2012-12-24",
    "2014-12-26",
    "2018-12-05",
    "2018-12-24",
    "2019-12-24",
    "2020-12-24",
    "2024-12-24",
    "2025-01-09",
    "2025-12-24",
    "2025-12-26",
)


class FederalReserveBanks(ExchangeCalendar):  # type: ignore[misc]
    """Business days of the Federal Reserve Banks, nominally 9:00 to 17:00 New York."""

    name = "us_federal"
    tz = ZoneInfo("America/New_York")
    open_times = ((None, time(9)),)
    close_times = ((None, time(17)),)
    _observance = staticmethod(sunday_to_monday)

    @classmethod
    def bound_min(cls) -> pd.Timestamp | None:
        """Return the first day from which the holiday rules hold."""
        return pd.Timestamp(_FIRST_YEAR, 1, 1)

    @property
    def regular_holidays(self) -> Any:  # noqa: ANN401 (exchange_calendars has no types)
        """Federal holidays on the day on which they are observed."""
        fixed = [
            Holiday(
                name,
                month=month,
                day=day,
                start_date=None if start is None else pd.Timestamp(start),
                observance=self._observance,
            )
            for name, month, day, start in _FIXED
        ]
        return HolidayCalendar([*fixed, *_MOVING])


class FederalReserveBoard(FederalReserveBanks):
    """Business days of the Board of Governors: its statistical releases appear on them."""

    name = "us_federal_board"
    _observance = staticmethod(nearest_workday)

    @property
    def adhoc_holidays(self) -> list[pd.Timestamp]:
        """Inauguration Days, and single days on which the offices were closed."""
        inaugurations = [
            pd.Timestamp(sunday_to_monday(pd.Timestamp(year, 1, 20)))
            for year in range(1981, 2100, 4)
        ]
        return [*inaugurations, *map(pd.Timestamp, _BOARD_CLOSINGS)]
