"""The attention core: one interface, a linear and a softmax kernel.

Equations are named by their numbers in docs/attention.md.
"""

from .errors import NonFiniteError, check_finite
from .favor import Favor
from .feature_maps import ExponentialMap, FeatureMap
from .hedgehog import Hedgehog
from .linear import (
    absorb_linear,
    denominators,
    linear_attention,
    read_denominators,
    read_linear,
)
from .named_maps import feature_map
from .softmax import absorb_softmax, read_softmax, softmax_attention
from .state import LinearState, SoftmaxState
from .visibility import empty_rows

__all__ = [
    "ExponentialMap",
    "Favor",
    "FeatureMap",
    "Hedgehog",
    "LinearState",
    "NonFiniteError",
    "SoftmaxState",
    "absorb_linear",
    "absorb_softmax",
    "check_finite",
    "denominators",
    "empty_rows",
    "feature_map",
    "linear_attention",
    "read_denominators",
    "read_linear",
    "read_softmax",
    "softmax_attention",
]
