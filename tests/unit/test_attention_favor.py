"""Random features of the softmax kernel: what is drawn, and the estimate they give.

The stabiliser that keeps their exponentials finite has tests of its own, in
`test_attention_maximum`.
"""

import io
import math
from collections.abc import Callable

import pytest
import torch
from attention_rows import assert_near, make_rows
from scipy import stats
from torch import Tensor

from infoset.models.attention import Favor, linear_attention, softmax_attention


def blocks(phi: Favor) -> list[Tensor]:
    """Return the directions of all heads in blocks of K: [H, K, up to K]."""
    width = phi.projection.shape[1]
    return list(phi.projection.double().split(width, dim=-1))


@pytest.mark.parametrize("num_features", [1, 3, 8, 20])
def test_directions_are_orthogonal_in_blocks(num_features: int) -> None:
    phi = Favor(8, num_features, num_heads=3)
    assert phi.projection.shape == (3, 8, num_features)
    for block in blocks(phi):
        directions = block / block.norm(dim=1, keepdim=True)
        products = directions.mT @ directions
        unit = torch.eye(block.shape[-1], dtype=torch.float64).expand_as(products)
        # They are stored in single precision.
        assert_near(products, unit, dtype=torch.float32)


def test_lengths_are_those_of_independent_normal_vectors() -> None:
    """Squared lengths of K normal numbers follow a chi-squared law of K degrees."""
    lengths = Favor(8, 4000).projection.double().square().sum(1).flatten()
    assert stats.kstest(lengths.numpy(), stats.chi2(df=8).cdf).pvalue > 0.01
    # Neither all the same, as another variant has them, nor the same within a block.
    assert (
        stats.kstest(torch.full((4000,), 8.0).numpy(), stats.chi2(df=8).cdf).pvalue == 0
    )
    pairs = lengths.view(-1, 2)
    assert abs(torch.corrcoef(pairs.T)[0, 1].item()) < 3 / math.sqrt(len(pairs))


def test_each_direction_of_a_block_is_a_normal_vector() -> None:
    """Also the first: without the signs of R, a QR prefers one side of the sphere."""
    phi = Favor(3, 3 * 2000)
    numbers = torch.stack(blocks(phi))[:, 0]
    for place in range(3):
        for axis in range(3):
            drawn = numbers[:, axis, place].numpy()
            assert stats.kstest(drawn, stats.norm.cdf).pvalue > 0.01, (place, axis)


def test_the_seed_alone_decides_what_is_drawn() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = Favor(4, 6, num_heads=2, seed=5).projection
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert torch.equal(Favor(4, 6, num_heads=2, seed=5).projection, first)
    assert not torch.equal(Favor(4, 6, num_heads=2, seed=6).projection, first)
    assert not torch.equal(first[0], first[1])


def test_directions_are_kept_with_the_weights_and_never_drawn_again() -> None:
    phi, other = Favor(4, 6, seed=0), Favor(4, 6, seed=1)
    assert list(phi.state_dict()) == ["projection"]
    assert not list(phi.parameters())
    rows = make_rows(20)
    want, _ = linear_attention(*rows.qkv, feature_map=phi)
    for training in (True, False, True):
        phi.train(training)
        assert torch.equal(linear_attention(*rows.qkv, feature_map=phi)[0], want)
    assert not torch.equal(linear_attention(*rows.qkv, feature_map=other)[0], want)
    file = io.BytesIO()
    torch.save(phi.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(linear_attention(*rows.qkv, feature_map=other)[0], want)


# Two vectors and the weight that softmax attention gives them, exp(q . k / sqrt(K)).
QUERY, KEY = (
    torch.tensor([[[x]]], dtype=torch.float64)
    for x in ([0.25, -0.125, 0.5, 0.375], [0.5, -0.25, 0.5, 0.25])
)
KERNEL = math.exp(0.5 / 2)


def estimated(phi: Favor) -> Tensor:
    """Return what a map makes of the weight."""
    return (phi.exponents(QUERY) + phi.exponents(KEY)).exp().sum()


def estimates(num_features: int, *, num_seeds: int) -> Tensor:
    """Return what each seed makes of the weight."""
    maps = [Favor(4, num_features, seed=seed) for seed in range(num_seeds)]
    return torch.stack([estimated(phi) for phi in maps])


def test_a_map_can_be_called_by_itself() -> None:
    phi = Favor(4, 6)
    assert_near(phi(KEY), phi.exponents(KEY).exp())


def test_the_mean_over_seeds_is_the_kernel() -> None:
    drawn = estimates(32, num_seeds=1000)
    error = drawn.std() / math.sqrt(len(drawn))
    # Small enough to see 3 %: without the root of K the kernel would be 28 % larger.
    assert error < 0.01 * KERNEL
    assert abs(drawn.mean() - KERNEL) < 3 * error


def test_the_error_of_the_kernel_falls_with_the_root_of_the_number_of_features() -> (
    None
):
    sizes = (4, 16, 64, 256)
    errors = [
        (estimates(size, num_seeds=150) - KERNEL).square().mean().sqrt()
        for size in sizes
    ]
    for more, fewer in zip(errors[1:], errors, strict=False):
        # Half of it, give or take three times what 150 squares leave uncertain.
        assert fewer / more == pytest.approx(2, rel=0.3)


def test_the_error_of_the_outputs_falls_towards_exact_softmax() -> None:
    """A ratio of unbiased sums is biased all the same, the less the more features."""
    rows = make_rows(40)
    q, k, v = rows.q / 2, rows.k / 2, rows.v
    want, _ = softmax_attention(q, k, v)
    errors = []
    for size in (4, 64, 1024):
        outputs = [
            linear_attention(q, k, v, feature_map=Favor(4, size, seed=seed))[0]
            for seed in range(20)
        ]
        mean, spread = torch.stack(outputs).mean(0), torch.stack(outputs) - want
        errors.append((spread.square().mean().sqrt(), (mean - want).abs().mean()))
    for (root, bias), (fewer_root, fewer_bias) in zip(errors[1:], errors, strict=False):
        assert root < 0.5 * fewer_root
        assert bias < 0.5 * fewer_bias


def test_independent_directions_estimate_worse_than_orthogonal_ones() -> None:
    """Planted: what the blocks are for."""
    independent = []
    for seed in range(600):
        phi = Favor(4, 4, seed=seed)
        generator = torch.Generator().manual_seed(seed)
        phi.projection = torch.randn(1, 4, 4, generator=generator)
        independent.append(estimated(phi))
    worse = (torch.stack(independent) - KERNEL).square().mean()
    assert (estimates(4, num_seeds=600) - KERNEL).square().mean() < 0.9 * worse


def shared_maximum(x: Tensor, phi: Favor, *, is_query: bool) -> Tensor:
    """Planted: features as widely copied, from a package for the same paper.

    https://github.com/lucidrains/performer-pytorch, `softmax_kernel`: the maximum of
    the keys is taken over features and time, and an epsilon is added afterwards.
    """
    projection = phi.projection.to(x.dtype)
    dash = (x * x.shape[-1] ** -0.25) @ projection
    diagonal = x.square().sum(-1, keepdim=True) / 2 * x.shape[-1] ** -0.5
    top = dash.amax(-1 if is_query else (-1, -2), keepdim=True)
    features: Tensor = (dash - diagonal - top).exp() + 1e-4
    return features / math.sqrt(projection.shape[-1])


def planted(q: Tensor, k: Tensor, v: Tensor, phi: Favor) -> Tensor:
    query, key = (shared_maximum(x, phi, is_query=x is q) for x in (q, k))
    weight = (query @ key.mT).tril()
    return weight @ v / weight.sum(-1, keepdim=True)


def ours_at_once(q: Tensor, k: Tensor, v: Tensor, phi: Favor) -> Tensor:
    return linear_attention(q, k, v, feature_map=phi)[0]


def ours_step_by_step(q: Tensor, k: Tensor, v: Tensor, phi: Favor) -> Tensor:
    outputs, state = [], None
    for t in range(q.shape[2]):
        row = (x[:, :, t : t + 1] for x in (q, k, v))
        y, state = linear_attention(*row, feature_map=phi, initial_state=state)
        outputs.append(y)
    return torch.cat(outputs, dim=2)


Way = Callable[[Tensor, Tensor, Tensor, Favor], Tensor]


def changed_rows(attend: Way, *, rounding: float) -> tuple[int, float]:
    """Append 64 rows to 64 others.

    Return how many outputs of the first ones that changes, and the largest change, as a
    part of the output.
    """
    generator = torch.Generator().manual_seed(4)
    q, k, v = torch.randn(3, 1, 1, 128, 32, generator=generator, dtype=torch.float64)
    phi = Favor(32, 64)
    alone = attend(q[:, :, :64], k[:, :, :64], v[:, :, :64], phi)
    longer = attend(q, k, v, phi)[:, :, :64]
    change = ((longer - alone).norm(dim=-1) / alone.norm(dim=-1)).flatten()
    return int((change > rounding).sum()), float(change.max())


def test_the_running_maximum_passes_the_append_test_to_the_last_bit() -> None:
    assert changed_rows(ours_step_by_step, rounding=0) == (0, 0.0)
    assert changed_rows(ours_at_once, rounding=1e-12)[0] == 0


def test_the_maximum_over_time_fails_the_append_test() -> None:
    """The maximum cancels in the ratio, the epsilon does not.

    The first row is safe: it reads one key, whatever its weight.
    """
    num_changed, largest = changed_rows(planted, rounding=1e-12)
    assert num_changed == 63
    assert largest == pytest.approx(0.36, abs=0.01)
