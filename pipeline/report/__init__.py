"""The report of a run: one offline page."""

from .page import comparison_table, comparison_text, latency_text, write_report

__all__ = ["comparison_table", "comparison_text", "latency_text", "write_report"]
