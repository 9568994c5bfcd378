"""What a row must satisfy before it may enter an event log."""

from __future__ import annotations

import numpy as np
import pandas as pd
from jaxtyping import Bool

QUARANTINE_COLUMNS = ("stream", "row", "column", "reason")
_REQUIRED = ("entity", "event_time", "available_at")
# Names that queries give to columns of their own.
_RESERVED = frozenset(
    {*_REQUIRED, "sequence", "revision", "stream", "forecast_time", "age"}
)
_SHOWN = 5


def checked_frame(
    frame: pd.DataFrame,
    *,
    stream: str,
    values: tuple[str, ...],
    zone: str | None,
    scheduled: bool,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the usable rows in canonical types, and the quarantined ones.

    Raises
    ------
    ValueError, TypeError
        See `EventLog.from_pandas`.
    """
    _require_columns(frame, stream, values)
    checked = pd.DataFrame({"entity": _text_ids(frame["entity"], stream)})
    for clock in ("event_time", "available_at"):
        checked[clock] = utc_instants(
            frame[clock].reset_index(drop=True), name=clock, zone=zone, where=stream
        )
    checked["sequence"] = _sequences(frame, stream)
    for name in values:
        checked[name] = _values(frame[name].reset_index(drop=True), name, stream)
    quarantine = _quarantine(checked, stream, values)
    usable = checked.drop(index=quarantine["row"].tolist())
    if not scheduled:
        _require_known_after(usable, stream)
    return usable.reset_index(drop=True), quarantine


def utc_instants(
    clock: pd.Series, *, name: str, zone: str | None = None, where: str = ""
) -> pd.Series:
    """Return instants as UTC nanoseconds; a naive clock needs a declared zone.

    Parameters
    ----------
    clock : Series
        Datetimes, aware or naive.
    name, where : str
        Column and place for the error message.
    zone : str, optional
        IANA zone of naive datetimes.

    Raises
    ------
    ValueError
        For naive datetimes without a zone, an instant that does not exist or is
        ambiguous in the zone, or one that nanoseconds cannot hold.
    TypeError
        For a column that does not hold datetimes.
    """
    place = f" of {where}" if where else ""
    if not pd.api.types.is_datetime64_any_dtype(clock.dtype):
        raise TypeError(
            f"{name} must hold datetimes; got {clock.dtype}{place}. "
            "Parse the column before (pandas.to_datetime)."
        )
    if clock.dt.tz is None and clock.notna().any():
        if zone is None:
            row = int(clock.notna().to_numpy().argmax())
            raise ValueError(
                f"{name} must be timezone-aware; got {clock.iloc[row]} in row {row}"
                f"{place}. Declare `zone` for this source."
            )
        clock = _localised(clock, name, zone, place)
    if clock.dt.tz is None:  # nothing but missing values: any zone will do
        clock = clock.dt.tz_localize("UTC")
    try:
        utc: pd.Series = clock.dt.tz_convert("UTC").astype("datetime64[ns, UTC]")
    except pd.errors.OutOfBoundsDatetime as error:
        raise ValueError(
            f"{name} must lie between 1677 and 2262; {error}{place}. "
            "Correct or remove the row."
        ) from error
    return utc


def _localised(clock: pd.Series, name: str, zone: str, place: str) -> pd.Series:
    try:
        local: pd.Series = clock.dt.tz_localize(
            zone, ambiguous="raise", nonexistent="raise"
        )
    except KeyError as error:
        raise ValueError(
            f"zone of {name} must be an IANA zone such as America/New_York; got "
            f"{zone!r}{place}. Correct it."
        ) from error
    except ValueError as error:
        found = clock.dt.tz_localize(zone, ambiguous="NaT", nonexistent="NaT")
        wrong = (found.isna() & clock.notna()).to_numpy()
        row = int(wrong.argmax())
        raise ValueError(
            f"{name} must name one instant in {zone}; got {clock.iloc[row]} in row "
            f"{row}{place}: {error}. Give UTC or an offset for it."
        ) from error
    return local


def _require_columns(frame: pd.DataFrame, stream: str, values: tuple[str, ...]) -> None:
    for name in (*_REQUIRED, *values):
        if name not in frame.columns:
            raise ValueError(
                f"column {name!r} must be in the frame of stream {stream!r}; got "
                f"{', '.join(map(str, frame.columns))}. Rename or declare the column."
            )
        if list(frame.columns).count(name) > 1 or values.count(name) > 1:
            raise ValueError(
                f"column {name!r} of stream {stream!r} must be there once; got it "
                "more often. Rename or drop the others."
            )
    for name in sorted(_RESERVED.intersection(values)):
        raise ValueError(
            f"a value of stream {stream!r} must not be named {name!r}, which queries "
            "use themselves. Rename the column."
        )
    if not values:
        raise ValueError(f"values must name a column of stream {stream!r}; got none.")


def _text_ids(entity: pd.Series, stream: str) -> pd.Series:
    is_text = _is_text(entity)
    if not is_text.all():
        row = int((~is_text).argmax())
        raise TypeError(
            f"entity must be text; got {entity.tolist()[row]!r} in row {row} of stream "
            f"{stream!r}. Ids that look like numbers lose their zeros: read them as text."
        )
    return entity.reset_index(drop=True).astype("str")


def _is_text(column: pd.Series) -> Bool[np.ndarray, " n"]:
    return np.array(
        [isinstance(value, str) for value in column.tolist()], dtype=bool
    ) | column.isna().to_numpy(bool)


def _sequences(frame: pd.DataFrame, stream: str) -> pd.Series:
    if "sequence" not in frame.columns:
        return pd.Series(pd.array([pd.NA] * len(frame), dtype="Int64"))
    given = frame["sequence"].reset_index(drop=True)
    if not pd.api.types.is_integer_dtype(given.dtype) and given.notna().any():
        raise TypeError(
            f"sequence must hold integers; got {given.dtype} in stream {stream!r}. "
            "Floats round ids above 2**53: read the column as Int64."
        )
    if pd.api.types.is_unsigned_integer_dtype(given.dtype):
        large = (given > np.iinfo(np.int64).max).fillna(value=False).to_numpy(bool)
        if large.any():
            row = int(large.argmax())
            raise ValueError(
                f"sequence must fit int64; got {given.iloc[row]} in row {row} of stream "
                f"{stream!r}. Use smaller numbers."
            )
    return given.astype("Int64")


def _values(column: pd.Series, name: str, stream: str) -> pd.Series:
    is_other = pd.api.types.is_bool_dtype(column.dtype) or (
        pd.api.types.is_complex_dtype(column.dtype)
    )
    if pd.api.types.is_numeric_dtype(column.dtype) and not is_other:
        wide = column.astype("float64")
        exact = wide.isna() | (wide.astype(column.dtype) == column)
        if not exact.all():
            row = int((~exact).to_numpy().argmax())
            raise ValueError(
                f"{name} must fit a float64; got {column.iloc[row]} in row {row} of "
                f"stream {stream!r}. Keep ids as text."
            )
        return wide
    if _is_text(column).all():
        return column.astype("str")
    raise TypeError(
        f"{name} must hold numbers or text; got {column.dtype} in stream {stream!r}. "
        "Convert the column before."
    )


def _quarantine(
    checked: pd.DataFrame, stream: str, values: tuple[str, ...]
) -> pd.DataFrame:
    found: list[pd.DataFrame] = []
    taken = np.zeros(len(checked), dtype=bool)

    def take(wrong: pd.Series, column: str, reason: str) -> None:
        rows = np.flatnonzero(wrong.to_numpy() & ~taken)
        taken[rows] = True
        found.append(
            pd.DataFrame(
                {"stream": stream, "row": rows, "column": column, "reason": reason}
            )
        )

    for name in _REQUIRED:
        take(checked[name].isna(), name, "missing")
    numbers = [n for n in values if checked[n].dtype == "float64"]
    for name in numbers:
        infinite = pd.Series(np.isinf(checked[name].to_numpy()))
        take(infinite, name, "infinite")
    take(checked[list(values)].isna().all(axis=1), values[0], "no value")
    return pd.concat(found, ignore_index=True)


def _require_known_after(usable: pd.DataFrame, stream: str) -> None:
    early = usable.index[usable["event_time"] > usable["available_at"]]
    if len(early):
        rows = ", ".join(str(row) for row in early[:_SHOWN])
        more = f" and {len(early) - _SHOWN} more" if len(early) > _SHOWN else ""
        first = usable.loc[early[0]]
        raise ValueError(
            "event_time must not be after available_at; got "
            f"{first['event_time']} > {first['available_at']} in rows {rows}{more} of "
            f"stream {stream!r}. Correct the clock, or declare the stream `scheduled`."
        )
