"""What was known, and when."""

from . import naive
from .arrays import EventArrays, event_arrays
from .asof import as_of, vintage
from .changes import Change, with_change
from .errors import InformationMismatch, LookAheadError
from .events import EventLog
from .forecast_times import forecast_points
from .sequences import CausalScale, Samples, prepare_samples
from .targets import Target, with_targets
from .timeline import History, Timeline, timeline

__all__ = [
    "CausalScale",
    "Change",
    "EventArrays",
    "EventLog",
    "History",
    "InformationMismatch",
    "LookAheadError",
    "Samples",
    "Target",
    "Timeline",
    "as_of",
    "event_arrays",
    "forecast_points",
    "naive",
    "prepare_samples",
    "timeline",
    "vintage",
    "with_change",
    "with_targets",
]
