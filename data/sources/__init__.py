"""Declared sources: files of facts, read into an event log."""

from .declaration import SourceDeclaration
from .load import event_log, source_log

__all__ = ["SourceDeclaration", "event_log", "source_log"]
