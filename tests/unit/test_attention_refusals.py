"""What the attention core refuses, and in which words."""

import math
import re

import jaxtyping
import pytest
import torch
from attention_rows import KERNELS, Rows, make_rows

from infoset.models.attention import (
    Favor,
    Hedgehog,
    LinearState,
    NonFiniteError,
    check_finite,
    feature_map,
    linear_attention,
)
from infoset.models.settings import LinearAttention
from infoset.pipeline.config import load_experiment

every_kernel = pytest.mark.parametrize("name", list(KERNELS))


@pytest.mark.parametrize(("place", "bad"), [("q", math.nan), ("k", -math.inf)])
def test_check_finite_names_place_head_and_position(place: str, bad: float) -> None:
    rows = make_rows(5, padding="right", heads=3)
    q, k, v = (torch.where(rows.shown, x, math.nan) for x in rows.qkv)
    broken = Rows(q, k, v, rows.mask)
    check_finite(*broken.qkv, rows.mask, where="layer 2", decay=rows.decay)
    getattr(broken, place)[1, 2, 1, 3] = bad
    message = (
        f"{place} must be finite in visible rows; got {bad} "
        "(layer 2, batch row 1, head 2, position 1). "
        "Look for missing or unscaled inputs, or for training that diverged."
    )
    with pytest.raises(NonFiniteError, match=re.escape(message)):
        check_finite(*broken.qkv, rows.mask, where="layer 2")


def test_check_finite_refuses_decay_that_is_negative_or_not_finite() -> None:
    rows = make_rows(5, forget=True)
    assert rows.decay is not None
    rows.decay[0, 1, 3] = -0.25
    message = (
        "decay must not be negative; got -0.25 "
        "(layer 0, batch row 0, head 1, position 3). "
        "Rates are at least zero and rows are in order of time."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        check_finite(*rows.qkv, where="layer 0", decay=rows.decay)
    rows.decay[0, 1, 3] = math.inf
    with pytest.raises(NonFiniteError, match=r"decay must be finite .* position 3"):
        check_finite(*rows.qkv, where="layer 0", decay=rows.decay)


WRONG_SHAPES = {
    "q must have axes [2, 2, 6, 4] like k; got [2, 2, 6, 5].": {
        "q": torch.zeros(2, 2, 6, 5)
    },
    "k must be [B, H, T, K]; got [2, 6, 4].": {"k": torch.zeros(2, 6, 4)},
    "v must have axes [2, 2, 6] like k; got [2, 2, 7].": {"v": torch.zeros(2, 2, 7, 3)},
    "mask must have axes [2, 6] like k; got [2, 5].": {
        "mask": torch.ones(2, 5, dtype=torch.bool)
    },
    "decay must have axes [2, 2, 6] like k; got [2, 2].": {"decay": torch.zeros(2, 2)},
}


@pytest.fixture
def _as_users_call_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the shape annotations being enforced, as they are in tests only."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.mark.usefixtures("_as_users_call_it")
@pytest.mark.parametrize("message", list(WRONG_SHAPES))
@every_kernel
def test_wrong_shapes_are_refused(name: str, message: str) -> None:
    rows = make_rows(6)
    inputs = {"q": rows.q, "k": rows.k, "v": rows.v, **WRONG_SHAPES[message]}
    with pytest.raises(ValueError, match=re.escape(message)):
        KERNELS[name].attend(**inputs)
    if "q" not in WRONG_SHAPES[message]:
        del inputs["q"]
        with pytest.raises(ValueError, match=re.escape(message)):
            KERNELS[name].absorb(**inputs)


@pytest.mark.usefixtures("_as_users_call_it")
@every_kernel
def test_a_mask_of_numbers_and_a_foreign_state_are_refused(name: str) -> None:
    rows, kernel = make_rows(6), KERNELS[name]
    message = "mask must be boolean with True for a real event; got torch.int64."
    with pytest.raises(TypeError, match=re.escape(message)):
        kernel.attend(*rows.qkv, mask=torch.ones(2, 6, dtype=torch.int64))
    other = make_rows(6, batch=3)
    state = kernel.absorb(other.k, other.v)
    message = "initial_state must hold values [2, 2, ..., 3] like v; got [3, 2, "
    with pytest.raises(ValueError, match=re.escape(message)):
        kernel.attend(*rows.qkv, initial_state=state)


def test_settings_that_mean_nothing_are_refused() -> None:
    rows = make_rows(6)
    with pytest.raises(ValueError, match=r"chunk_size must be at least 1; got 0\."):
        linear_attention(*rows.qkv, feature_map="elu1", chunk_size=0)
    message = (
        "feature_map must be one of elu1, favor, hedgehog, identity, relu, "
        "squared_relu; got 'elu'."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        feature_map("elu")
    half = torch.zeros(1, 1, 2, 2, dtype=torch.float16)
    message = "S must be float32 or float64; got torch.float16."
    with pytest.raises(TypeError, match=re.escape(message)):
        LinearState(S=half, z=half[..., 0], count=torch.zeros(1, dtype=torch.int64))
    message = "z must have the type of S, torch.float32; got torch.float16."
    with pytest.raises(TypeError, match=re.escape(message)):
        LinearState(
            S=half.float(), z=half[..., 0], count=torch.zeros(1, dtype=torch.int64)
        )


@pytest.mark.parametrize("name", ["favor", "hedgehog"])
def test_maps_of_one_width_are_refused_without_it(name: str) -> None:
    message = f"feature map {name} needs the width of the queries; got no `width`."
    with pytest.raises(ValueError, match=re.escape(message)):
        feature_map(name)
    # Which is why a name alone will not do for them.
    with pytest.raises(ValueError, match=re.escape(message)):
        linear_attention(*make_rows(6).qkv, feature_map=name)


@pytest.mark.parametrize(
    ("name", "num_features"), [("elu1", 8), ("hedgehog", 8), ("favor", 0), ("relu", 0)]
)
def test_a_number_of_features_belongs_to_favor(name: str, num_features: int) -> None:
    message = (
        "num_features must be at least 1 and belongs to favor alone; "
        f"got {num_features} for {name}."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        feature_map(name, width=4, num_features=num_features)


def test_sizes_of_a_map_are_taken() -> None:
    favor = feature_map("favor", width=4, num_features=7, num_heads=2, seed=3)
    assert isinstance(favor, Favor)
    want = Favor(4, 7, num_heads=2, seed=3).projection
    assert torch.equal(favor.projection, want)
    favor = feature_map("favor", width=4)
    assert isinstance(favor, Favor)
    assert favor.projection.shape == (1, 4, 4)
    hedgehog = feature_map("hedgehog", width=4, num_heads=2)
    assert isinstance(hedgehog, Hedgehog)
    assert torch.equal(hedgehog.weight, torch.eye(4).expand(2, 4, 4))


WRONG_SETTINGS = {
    "{kind: linear, feature_map: elu1, num_features: 8}": (
        "forecasters.linear must have no num_features but for feature_map favor; "
        "got 8 for elu1."
    ),
    "{kind: linear, num_features: 8}": (
        "forecasters.linear must have no num_features but for feature_map favor; "
        "got 8 for elu1."
    ),
    "{kind: linear, feature_map: favor, num_features: 0}": (
        "forecasters.linear.num_features must be greater than or equal to 1; got 0."
    ),
    "{kind: linear, denominator_floor: -0.5}": (
        "forecasters.linear.denominator_floor must be greater than or equal to 0; "
        "got -0.5."
    ),
    "{kind: linear, denominator_floor: .inf}": (
        "forecasters.linear.denominator_floor must be a finite number; got inf."
    ),
    "{kind: linear, denominator_floor: .nan}": (
        "forecasters.linear.denominator_floor must be a finite number; got nan."
    ),
}


@pytest.mark.parametrize("settings", WRONG_SETTINGS)
def test_settings_of_the_linear_forecaster_are_refused(settings: str) -> None:
    message = re.escape(WRONG_SETTINGS[settings])
    with pytest.raises(ValueError, match=message):
        load_experiment("treasury", [f"forecasters.linear={settings}"])


def test_settings_that_are_off_are_not_written() -> None:
    """So that configurations from before them keep their digests."""
    assert LinearAttention().model_dump() == {"feature_map": "elu1"}
    on = LinearAttention(feature_map="favor", num_features=8, denominator_floor=0.01)
    assert on.model_dump() == {
        "feature_map": "favor",
        "num_features": 8,
        "denominator_floor": 0.01,
    }
