"""What every stream refuses: events and forecasts that would go back in time."""

from __future__ import annotations

from infoset.data.errors import LookAheadError


def require_order(available_at: int, newest: int, *, entity: str | None = None) -> None:
    """Refuse an event that was available before the newest one.

    Parameters
    ----------
    available_at, newest : int
        UTC nanoseconds.
    entity : str, optional
        Whose event it is, where several are at hand.

    Raises
    ------
    ValueError
    """
    if available_at < newest:
        raise ValueError(
            "events must come in order of availability; got available_at "
            f"{available_at} ns after {newest} ns{_of(entity)}. Sort the feed, or start "
            "a new stream from the log."
        )


def require_not_before(at: int, newest: int, *, entity: str | None = None) -> None:
    """Refuse a forecast for an instant before the newest event was available.

    Parameters
    ----------
    at, newest : int
        UTC nanoseconds.
    entity : str, optional
        Whose forecast it is, where several are at hand.

    Raises
    ------
    LookAheadError
    """
    if at < newest:
        raise LookAheadError(
            "a forecast must not be made before the newest event was available; got "
            f"{at} ns with an event of {newest} ns{_of(entity)}. Fork the stream before "
            "that event."
        )


def _of(entity: str | None) -> str:
    return "" if entity is None else f" (entity {entity!r})"
