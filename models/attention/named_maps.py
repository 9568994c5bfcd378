"""Feature maps by name."""

from __future__ import annotations

from collections.abc import Callable

from .favor import Favor
from .feature_maps import Elu1, FeatureMap, Identity, Relu, SquaredRelu
from .hedgehog import Hedgehog

_PLAIN: dict[str, Callable[[], FeatureMap]] = {
    "elu1": Elu1,
    "identity": Identity,
    "relu": Relu,
    "squared_relu": SquaredRelu,
}
NAMES = ("elu1", "favor", "hedgehog", "identity", "relu", "squared_relu")


def feature_map(
    name: str,
    *,
    width: int | None = None,
    num_heads: int = 1,
    num_features: int | None = None,
    seed: int = 0,
) -> FeatureMap:
    """Return the feature map called `name`.

    Parameters
    ----------
    name : str
        One of elu1, favor, hedgehog, identity, relu, squared_relu.
    width : int, optional
        K; what favor and hedgehog are made for.
    num_heads : int
        Heads that have directions (favor) or a matrix (hedgehog) of their own.
    num_features : int, optional
        R of favor; None = K.
    seed : int
        Of favor's directions.

    Raises
    ------
    ValueError
        If no map has that name, or a size is missing or of no use.
    """
    if name not in NAMES:
        message = f"feature_map must be one of {', '.join(NAMES)}; got {name!r}."
        raise ValueError(message)
    if num_features is not None and (name != "favor" or num_features < 1):
        message = (
            "num_features must be at least 1 and belongs to favor alone; "
            f"got {num_features} for {name}."
        )
        raise ValueError(message)
    if name in _PLAIN:
        return _PLAIN[name]()
    if width is None:
        message = f"feature map {name} needs the width of the queries; got no `width`."
        raise ValueError(message)
    if name == "hedgehog":
        return Hedgehog(width, num_heads=num_heads)
    return Favor(width, num_features or width, num_heads=num_heads, seed=seed)


def as_feature_map(chosen: FeatureMap | str) -> FeatureMap:
    """Return `chosen`, looked up where it is a name."""
    return feature_map(chosen) if isinstance(chosen, str) else chosen
