"""Forgetting: the short cut for calm chunks, and what is not calm, are the definition."""

from dataclasses import replace

import pytest
import torch
from attention_rows import KERNELS, Rows, assert_near, differentiate, make_rows

from infoset.models.attention import fading, fused

LINEAR = [name for name in KERNELS if name != "softmax"]


def check(name: str, rows: Rows, *, inclusive: bool) -> None:
    """Compare values, state and gradients with the definition, in both number types."""
    kernel = KERNELS[name]
    want = differentiate(kernel.naive, rows, inclusive=inclusive)
    for dtype in (torch.float64, torch.float32):
        got = differentiate(kernel.attend, rows.to(dtype), inclusive=inclusive)
        for key, x in got.items():
            assert_near(x, want[key], dtype=dtype, name=f"{dtype} {key}")


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the ways that are taken, as they are."""
    taken: list[str] = []
    for name in ("calm_fading", "fading"):
        own = getattr(fading, name)

        def noted(
            *args: object, _own: object = own, _name: str = name, **kwargs: object
        ):
            taken.append(_name)
            return _own(*args, **kwargs)  # type: ignore[operator] # a function

        monkeypatch.setattr(fused, name, noted)
    return taken


@pytest.mark.parametrize("inclusive", [True, False])
@pytest.mark.parametrize("padding", ["none", "mixed"])
@pytest.mark.parametrize("name", LINEAR)
def test_each_row_at_its_own_level_is_the_definition_too(
    name: str,
    padding: str,
    monkeypatch: pytest.MonkeyPatch,
    ways: list[str],
    *,
    inclusive: bool,
) -> None:
    monkeypatch.setattr(fading, "_CALM", -1.0)
    check(name, make_rows(130, padding=padding, forget=True), inclusive=inclusive)
    assert set(ways) == {"fading"}


@pytest.mark.parametrize("inclusive", [True, False])
@pytest.mark.parametrize("padding", ["none", "middle"])
@pytest.mark.parametrize("silence", [5.0, 41.0, 300.0, 1e6])
def test_a_silence_of_any_length_is_the_definition(
    silence: float, padding: str, ways: list[str], *, inclusive: bool
) -> None:
    # At the start of a chunk, within one, and twice in a row.
    rows = make_rows(200, padding=padding, forget=True)
    assert rows.decay is not None
    decay = rows.decay.clone()
    decay[..., [32, 70, 71, 128]] = silence
    check("elu1", replace(rows, decay=decay), inclusive=inclusive)
    assert set(ways) == ({"calm_fading"} if silence < 20 else {"fading"})


def test_a_calm_sequence_takes_the_short_cut(ways: list[str]) -> None:
    # Others have queries that share no feature with any key; their sums are done twice.
    for name in ("elu1", "favor", "hedgehog"):
        for inclusive in (True, False):
            rows = make_rows(130, padding="left", forget=True)
            check(name, rows, inclusive=inclusive)
    assert set(ways) == {"calm_fading"}


def test_a_floor_is_compared_with_denominators_as_they_are(ways: list[str]) -> None:
    rows = make_rows(130, forget=True)
    kernel = KERNELS["elu1"]
    want = differentiate(kernel.naive, rows, floor=3.0)
    got = differentiate(kernel.attend, rows, floor=3.0)
    for key, x in got.items():
        assert_near(x, want[key], dtype=torch.float64, name=key)
    assert set(ways) == {"fading"}


def test_one_long_silence_leaves_the_other_blocks_calm(ways: list[str]) -> None:
    rows = make_rows(12_000, forget=True, batch=1, heads=1)
    assert rows.decay is not None
    decay = rows.decay.clone()
    decay[..., 9_000] = 100.0
    y, _ = KERNELS["elu1"].attend(*rows.qkv, decay=decay)
    assert sorted(ways) == ["calm_fading", "calm_fading", "fading"]
    part = rows.cut(8_900, 9_300)
    late, _ = KERNELS["elu1"].naive(*part.qkv, decay=decay[..., 8_900:9_300])
    assert_near(y[:, :, 9_050:9_300], late[:, :, 150:])
