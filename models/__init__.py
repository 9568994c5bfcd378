"""Tensors in, distributions out."""

from .forecasts import LEVELS, Forecaster, Forecasts

__all__ = ["LEVELS", "Forecaster", "Forecasts"]
