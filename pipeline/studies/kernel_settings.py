"""What `infoset study kernels` may be told beside the experiment it starts from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from infoset.data.strict import Strict
from infoset.pipeline.config_complaints import complaints
from infoset.pipeline.config_text import override

PREFIX = "study"
_FEATURES_OF_ALL_SEEDS = 256

Sizes = Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)]
RecallMap = Literal[
    "softmax", "elu1", "relu", "squared_relu", "hedgehog", "favor_k", "favor_4k"
]


class TuningSettings(Strict):
    """Fine-tuning of a forecaster whose attention was replaced, without dropout.

    Attributes
    ----------
    num_steps, batch_size : int
        0 steps = none.
    learning_rate : float
        The same in every step.
    num_seeds : int
        Draws of the features that are tuned.
    """

    num_steps: int = Field(default=12, ge=0)
    batch_size: int = Field(default=32, ge=1)
    learning_rate: float = Field(default=1e-3, gt=0)
    num_seeds: int = Field(default=1, ge=1)


class RecallSettings(Strict):
    """The associative-recall task.

    Attributes
    ----------
    maps : tuple of str
        favor_k and favor_4k are favor with as many features as a key has components,
        and four times as many.
    num_pairs : tuple of int
        Stored pairs; training sees all these numbers in turn.
    width : int
        K, and the width of a value.
    num_symbols : int
        What a value can be; guessing is right once in so many times.
    num_steps, batch_size : int
        Of training; a batch holds so many sequences.
    learning_rate : float
        At its peak.
    num_seeds : int
    num_questions : int
        Asked for each number of pairs and seed, at least.
    """

    maps: Annotated[tuple[RecallMap, ...], Field(min_length=1)] = (
        "softmax",
        "favor_4k",
        "hedgehog",
        "favor_k",
        "relu",
        "elu1",
        "squared_relu",
    )
    num_pairs: Sizes = (4, 8, 16, 32, 64, 128, 256, 512)
    width: int = Field(default=16, ge=2)
    num_symbols: int = Field(default=16, ge=2)
    num_steps: int = Field(default=300, ge=1)
    batch_size: int = Field(default=32, ge=1)
    learning_rate: float = Field(default=0.02, gt=0)
    num_seeds: int = Field(default=3, ge=1)
    num_questions: int = Field(default=1024, ge=1)


class KernelSettings(Strict):
    """Everything that the study adds to an experiment.

    Attributes
    ----------
    fold : int, optional
        Whose spans are used; None = the newest that tests every entity.
    causal_scale : bool
        Whether the forecaster is told the experiment's causal volatility. Without it
        the network must read the level of volatility from the events, so that its
        attention has work to do.
    num_steps : int
        Of training, without early stopping, at the experiment's learning rate.
    num_times : int
        Forecast times that are scored, taken evenly over the test span.
    num_features : tuple of int
        R.
    forecast_seeds : int
        Draws of the features for forecasts; fewer above 256 features, at least two,
        since they differ less and take longer.
    error_seeds : int
        Draws for the errors of the attention alone.
    error_sets : int
        Information sets from which queries, keys and values are taken.
    latency_forecasts : int
        Timed at the scored history; at the longest one ten are.
    tuning : TuningSettings
    recall : RecallSettings
    """

    fold: int | None = Field(default=None, ge=0)
    causal_scale: bool = False
    num_steps: int = Field(default=300, ge=1)
    num_times: int = Field(default=200, ge=1)
    num_features: Sizes = (16, 32, 64, 128, 256, 512, 1024)
    forecast_seeds: int = Field(default=5, ge=1)
    error_seeds: int = Field(default=20, ge=3)
    error_sets: int = Field(default=8, ge=1)
    latency_forecasts: int = Field(default=50, ge=10)
    tuning: TuningSettings = TuningSettings()
    recall: RecallSettings = RecallSettings()

    def num_draws(self, num_features: int) -> int:
        """Return the draws for forecasts with so many features."""
        fewer = self.forecast_seeds * _FEATURES_OF_ALL_SEEDS // num_features
        return min(self.forecast_seeds, max(2, fewer))


class _Given(Strict):
    study: KernelSettings = KernelSettings()


def kernel_settings(overrides: Sequence[str]) -> tuple[KernelSettings, list[str]]:
    """Read the overrides of the study, and return those of the experiment.

    Parameters
    ----------
    overrides : sequence of str
        ``path.to.key=value``; a path that starts with ``study.`` is the study's.

    Raises
    ------
    ValueError
        If a setting of the study is wrong; every wrong one is listed.
    """
    own = [text for text in overrides if text.strip().startswith(f"{PREFIX}.")]
    content: dict[str, Any] = {}
    for text in own:
        override(content, text)
    try:
        settings = _Given.model_validate(content).study
    except ValidationError as error:
        raise ValueError("\n".join(complaints(error, content))) from error
    return settings, [text for text in overrides if text not in own]
