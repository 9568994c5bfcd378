"""Numbers as the report prints them; an undefined one says so."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pandas as pd

UNDEFINED = "undefined"
_MINUS = "\N{MINUS SIGN}"
_UNBROKEN = "\N{NO-BREAK SPACE}"


def finite(value: object) -> float:
    """Return a number, or NaN for anything that is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    return float(value) if math.isfinite(value) else math.nan


def plain(value: float, decimals: int = 4, absent: str = UNDEFINED) -> str:
    """Write a number with fixed decimals, thousands apart: ``1,234.5000``."""
    if not math.isfinite(value):
        return absent
    return f"{_no_negative_zero(value, decimals):,.{decimals}f}".replace("-", _MINUS)


def significant(value: float, digits: int = 3, absent: str = UNDEFINED) -> str:
    """Write a number with significant digits: ``0.0123``, ``1,230``, ``1.2e-07``."""
    if not math.isfinite(value):
        return absent
    if value != 0 and not 1e-4 <= abs(value) < 1e9:
        return f"{value:.{digits - 1}e}".replace("-", _MINUS)
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits - 1}e}")  # 0.9996 has a digit before the point
    before = math.floor(math.log10(abs(rounded))) + 1
    return plain(value, max(0, digits - before))


def count(value: object) -> str:
    """Write a whole number, thousands apart."""
    number = finite(value)
    return UNDEFINED if math.isnan(number) else f"{round(number):,}"


def percent(value: float, decimals: int = 1, absent: str = UNDEFINED) -> str:
    """Write percent points: ``1.2 %``."""
    if not math.isfinite(value):
        return absent
    return f"{plain(value, decimals)}{_UNBROKEN}%"


def signed_percent(value: float, decimals: int = 1, absent: str = UNDEFINED) -> str:
    """Write a change in percent points, with its sign: ``+1.2 %``."""
    text = percent(value, decimals, absent)
    is_gain = math.isfinite(value) and _no_negative_zero(value, decimals) > 0
    return f"+{text}" if is_gain else text


def p_value(value: float, absent: str = UNDEFINED) -> str:
    """Write a p-value: ``0.012``, ``< 0.001``."""
    if not math.isfinite(value):
        return absent
    if value < 0.001:
        return "< 0.001"
    # 0.0496 and 0.0504 must not both read 0.05.
    return f"{value:.3f}" if value < 0.0995 else f"{value:.2f}"


def p_text(value: float, absent: str = UNDEFINED) -> str:
    """Write a p-value for a sentence: ``p = 0.012``, ``p < 0.001``."""
    text = p_value(value, absent)
    return f"p {text}" if text.startswith("<") or text == absent else f"p = {text}"


def duration(microseconds: float, absent: str = "not measured") -> str:
    """Write a latency in the unit that reads best: ``85 µs``, ``1.20 ms``, ``2.0 s``."""
    if not math.isfinite(microseconds):
        return absent
    unit, size = _time_unit(microseconds)
    return f"{significant(microseconds / size)}{_UNBROKEN}{unit}"


def round_duration(microseconds: float) -> str:
    """Write a round latency, such as the tick of an axis: ``20 µs``, ``1 ms``."""
    unit, size = _time_unit(microseconds)
    return f"{microseconds / size:g}{_UNBROKEN}{unit}"


def memory(num_bytes: float, absent: str = "not measured") -> str:
    """Write a size: ``512 B``, ``12.3 kB``, ``1.50 MB`` (thousands, not 1024)."""
    if not math.isfinite(num_bytes):
        return absent
    units = (("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9))
    fitting = [unit for unit in units if num_bytes < 999.5 * unit[1]]
    unit, size = (fitting or units[-1:])[0]
    return f"{significant(num_bytes / size)}{_UNBROKEN}{unit}"


def day(value: object) -> str:
    """Write the UTC date of an instant, as text or timestamp; anything else as it is."""
    try:
        time = pd.Timestamp(str(value))
    except ValueError:
        return UNDEFINED if value is None else str(value)
    if pd.isna(time):
        return UNDEFINED
    return str((time if time.tzinfo is None else time.tz_convert("UTC")).date())


def started(value: object) -> str:
    """Write an instant, given as text or Unix seconds, to the minute in UTC."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        time = pd.Timestamp(datetime.fromtimestamp(value, UTC))
    else:
        try:
            time = pd.Timestamp(str(value))
        except ValueError:
            return str(value)
    if pd.isna(time):
        return UNDEFINED
    time = time.tz_localize("UTC") if time.tzinfo is None else time.tz_convert("UTC")
    return f"{time:%Y-%m-%d %H:%M} UTC"


def _time_unit(microseconds: float) -> tuple[str, float]:
    if microseconds < 999.5:
        return "µs", 1.0
    return ("ms", 1e3) if microseconds < 999_500 else ("s", 1e6)


def _no_negative_zero(value: float, decimals: int) -> float:
    return round(value, decimals) + 0.0
