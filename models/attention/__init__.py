"""The attention core: one interface, a linear and a softmax kernel."""

from .errors import NonFiniteError, check_finite
from .feature_maps import FeatureMap, feature_map
from .linear import absorb_linear, linear_attention, read_linear, zero_denominators
from .softmax import absorb_softmax, read_softmax, softmax_attention
from .state import LinearState, SoftmaxState
from .visibility import empty_rows

__all__ = [
    "FeatureMap",
    "LinearState",
    "NonFiniteError",
    "SoftmaxState",
    "absorb_linear",
    "absorb_softmax",
    "check_finite",
    "empty_rows",
    "feature_map",
    "linear_attention",
    "read_linear",
    "read_softmax",
    "softmax_attention",
    "zero_denominators",
]
