"""Errors that name the promise they break; everything else is a ValueError."""


class LookAheadError(ValueError):
    """Something used information that was not yet available."""


class InformationMismatch(ValueError):  # noqa: N818 - it says what went wrong
    """Forecasts were compared that did not see the same information set."""
