"""The settings of the attention forecasters, as a configuration file gives them."""

from __future__ import annotations

from operator import not_
from typing import Annotated, Literal

from pydantic import Field, model_validator

from infoset.data.strict import Strict


class NetworkSize(Strict):
    """Everything about the network but its attention.

    Attributes
    ----------
    width : int
        D.
    num_layers, num_heads : int
        `width` is a multiple of `num_heads`.
    dropout : float
    forgetting : bool
        Whether heads learn to fade events by elapsed time.
    """

    width: int = Field(default=32, ge=1)
    num_layers: int = Field(default=2, ge=1)
    num_heads: int = Field(default=4, ge=1)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    forgetting: bool = True

    @model_validator(mode="after")
    def _whole_heads(self) -> NetworkSize:
        if self.width % self.num_heads:
            raise ValueError(
                f"must have a width that is a multiple of num_heads; got "
                f"{self.width} and {self.num_heads}."
            )
        return self


FeatureMapName = Literal[
    "elu1", "favor", "hedgehog", "identity", "relu", "squared_relu"
]


class LinearAttention(Strict):
    """The linear attention of all layers.

    Attributes
    ----------
    feature_map : str
    num_features : int, optional
        R of favor; by default the width of a head.
    denominator_floor : float
        What to divide by where the sum of weights is smaller; 0 = never. It changes
        the formula: weights then add up to less than one.
    """

    # Settings that are off are not written: older configurations keep their digests.
    feature_map: FeatureMapName = "elu1"
    num_features: Annotated[int | None, Field(ge=1, exclude_if=not_)] = None
    denominator_floor: Annotated[
        float, Field(ge=0, allow_inf_nan=False, exclude_if=not_)
    ] = 0.0

    @model_validator(mode="after")
    def _features_of_favor(self) -> LinearAttention:
        if self.num_features is not None and self.feature_map != "favor":
            raise ValueError(
                "must have no num_features but for feature_map favor; got "
                f"{self.num_features} for {self.feature_map}."
            )
        return self


class Training(Strict):
    """How a network is fitted.

    Attributes
    ----------
    learning_rate, weight_decay : float
    batch_size : int
        Forecast points per step.
    max_steps : int
    check_every : int
        Steps between two looks at the validation span.
    patience : int
        Looks without a gain before training stops.
    gradient_clip : float
        Largest gradient norm.
    """

    learning_rate: float = Field(default=2e-3, gt=0)
    weight_decay: float = Field(default=0.05, ge=0)
    batch_size: int = Field(default=128, ge=1)
    max_steps: int = Field(default=300, ge=1)
    check_every: int = Field(default=25, ge=1)
    patience: int = Field(default=4, ge=1)
    gradient_clip: float = Field(default=1.0, gt=0)
