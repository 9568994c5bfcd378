"""What a store promises and, where it cannot keep that, says."""


class StoreBusyError(ValueError):
    """Another writer is at work, or may be: nothing was stored."""


class StoreDamagedError(ValueError):
    """A file is missing or is not the one that was written."""


class StoreUnwritableError(OSError):
    """The place has no room, cannot be reached, or may not be written."""
