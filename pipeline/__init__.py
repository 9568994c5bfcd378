"""One experiment, from configuration to report."""

from .experiment import Run, run

__all__ = ["Run", "run"]
