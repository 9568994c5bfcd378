"""Declared sources: files of facts, read into an event log."""

from .event_log import AnySource, event_log
from .source import Source, VendorSource
from .tabular_source import TabularSource

__all__ = ["AnySource", "Source", "TabularSource", "VendorSource", "event_log"]
