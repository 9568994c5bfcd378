"""What was known, and when."""

from . import naive
from .arrays import EventArrays, event_arrays
from .asof import KnownValues, as_of, known_at_points, vintage
from .changes import Change, with_change
from .encoded_streams import with_embeddings
from .errors import InformationMismatch, LookAheadError
from .event_files import EventFiles
from .events import EventLog
from .forecast_times import forecast_points
from .revision_features import revision_features
from .sequences import CausalScale, Samples, prepare_samples
from .slices import InformationSlices, information_slices
from .targets import Target, with_targets
from .text_encoders import TextEncoder
from .timeline import History, Timeline, timeline
from .timeline_files import build_timelines, open_timelines

__all__ = [
    "CausalScale",
    "Change",
    "EventArrays",
    "EventFiles",
    "EventLog",
    "History",
    "InformationMismatch",
    "InformationSlices",
    "KnownValues",
    "LookAheadError",
    "Samples",
    "Target",
    "TextEncoder",
    "Timeline",
    "as_of",
    "build_timelines",
    "event_arrays",
    "forecast_points",
    "information_slices",
    "known_at_points",
    "naive",
    "open_timelines",
    "prepare_samples",
    "revision_features",
    "timeline",
    "vintage",
    "with_change",
    "with_embeddings",
    "with_targets",
]
