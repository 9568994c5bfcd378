"""Scores, and tests of their differences."""
