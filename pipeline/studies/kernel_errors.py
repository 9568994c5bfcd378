"""How far random features are from exact softmax attention: kernel and ratio.

An estimate of a kernel entry may be unbiased; the ratio of two sums of such estimates,
which is what attention returns, is biased all the same. Both are measured here, over
draws of the features.

References
----------
.. [1] Choromanski et al. (2021), "Rethinking attention with Performers", lemmas 1 and 2,
   arXiv 2009.14794
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from infoset.models.attention import ExponentialMap, FeatureMap
from infoset.models.kernels import LinearKernel, SoftmaxKernel

from .attention_calls import AttentionCall


@dataclass(frozen=True)
class KernelError:
    """Relative error of phi(q) . phi(k) against exp(q . k / sqrt(K)).

    Attributes
    ----------
    typical : float
        Median of its absolute value over pairs and draws.
    rms : float
        Root mean square: a few large entries decide it.
    bias, bias_error : float
        Mean over pairs and draws, and its standard error over the draws.
    out_of_reach : float
        Share of pairs for which so many features have a relative standard deviation
        above one. Their expectation comes from draws that are too rare to be seen: a
        typical draw says almost zero, and a mean over draws falls short of it.
    """

    typical: float
    rms: float
    bias: float
    bias_error: float
    out_of_reach: float


@dataclass(frozen=True)
class RatioError:
    """Error of the attention output, in units of the exact output's root mean square.

    error^2 = squared_bias + spread^2, exactly.

    Attributes
    ----------
    error : float
        Root mean square over outputs and draws.
    spread : float
        Root mean square of the standard deviation over draws.
    squared_bias, squared_bias_error : float
        Mean square of the error's expectation over draws, estimated without bias (so it
        can be negative), and its standard error (jackknife over the draws).
    """

    error: float
    spread: float
    squared_bias: float
    squared_bias_error: float

    @property
    def bias(self) -> float | None:
        """Root of the squared bias; None where it is not above two standard errors."""
        is_clear = self.squared_bias > 2 * self.squared_bias_error
        return math.sqrt(self.squared_bias) if is_clear else None

    @property
    def bias_error(self) -> float | None:
        """Standard error of the root (delta method), where there is one."""
        bias = self.bias
        return None if bias is None else self.squared_bias_error / (2 * bias)

    @property
    def bias_bound(self) -> float:
        """Root of the squared bias and two standard errors: the largest likely bias."""
        return math.sqrt(max(0.0, self.squared_bias + 2 * self.squared_bias_error))


def measured_kernel_error(
    call: AttentionCall, maps: Sequence[ExponentialMap]
) -> KernelError:
    """Compare every entry that a query reads, for each draw of the features."""
    pairs = call.pairs()
    q, k = call.q.double(), call.k.double()
    logits = (q @ k.mT / math.sqrt(q.shape[-1]))[pairs]
    rows = []
    with torch.inference_mode():
        for phi in maps:
            product = phi.exponents(q).exp() @ phi.exponents(k).exp().mT
            # As logarithms until the last step, so that the entry cannot overflow.
            rows.append((product[pairs].log() - logits).exp() - 1)
        num_features = maps[0].exponents(q[:, :, :1]).shape[-1]
    deviation = relative_deviation(call, num_features)[pairs]
    return kernel_error(torch.stack(rows).numpy(), deviation.numpy())


def relative_deviation(
    call: AttentionCall, num_features: int
) -> Float[Tensor, "B H P T"]:
    """Return the standard deviation of an entry over draws, relative to the entry.

    For independent directions: sqrt((exp(|q + k|^2 / sqrt(K)) - 1) / R) [1]_, lemma 2.
    """
    q, k = call.q.double(), call.k.double()
    size = (q[..., :, None, :] + k[..., None, :, :]).square().sum(-1)
    return (torch.expm1(size / math.sqrt(q.shape[-1])) / num_features).sqrt()


def measured_ratio_error(call: AttentionCall, maps: Sequence[FeatureMap]) -> RatioError:
    """Compare every output with that of softmax attention, for each draw."""
    exact = call.outputs(SoftmaxKernel())
    estimates = torch.stack([call.outputs(LinearKernel(phi)) for phi in maps])
    return ratio_error(exact.double().numpy(), estimates.double().numpy())


def kernel_error(
    relative: Float[np.ndarray, "S n"], deviation: Float[np.ndarray, " n"]
) -> KernelError:
    """Summarise relative errors of n pairs under S draws.

    Parameters
    ----------
    relative : ndarray of shape (S, n)
    deviation : ndarray of shape (n,)
        Standard deviation over draws that theory gives.

    Raises
    ------
    ValueError
        For fewer than three draws.
    """
    num_draws = _enough_draws(relative)
    per_draw = relative.mean(axis=1)
    return KernelError(
        typical=float(np.median(np.abs(relative))),
        rms=float(np.sqrt(np.mean(relative**2))),
        bias=float(per_draw.mean()),
        bias_error=float(per_draw.std(ddof=1) / math.sqrt(num_draws)),
        out_of_reach=float(np.mean(deviation > 1)),
    )


def ratio_error(
    exact: Float[np.ndarray, "n V"], estimates: Float[np.ndarray, "S n V"]
) -> RatioError:
    """Split the error of S estimates of n outputs into bias and spread.

    With e the mean error of an output over the draws and s^2 its variance there, the
    squared bias is estimated by |e|^2 - s^2 / S: the square of a mean is too large by
    the variance of that mean.

    Raises
    ------
    ValueError
        For fewer than three draws, or exact outputs that are all zero.
    """
    num_draws = _enough_draws(estimates)
    size = float(np.mean(exact**2))
    if size == 0.0:
        raise ValueError(
            f"exact outputs must not all be zero; got {len(exact)} rows of zeros. "
            "Train the forecaster first."
        )
    errors = (estimates - exact).reshape(num_draws, -1) / math.sqrt(size)
    squared_bias, variance = _moments(
        errors.mean(axis=0), np.mean(errors**2, axis=0), num_draws
    )
    return RatioError(
        error=float(np.sqrt(np.mean(errors**2))),
        spread=math.sqrt(variance),
        squared_bias=squared_bias,
        squared_bias_error=_jackknife_error(errors),
    )


def pooled_kernel_error(layers: Sequence[KernelError]) -> KernelError:
    """Return the mean over layers (of the rms: the root mean square)."""
    return KernelError(
        typical=float(np.mean([each.typical for each in layers])),
        rms=float(np.sqrt(np.mean([each.rms**2 for each in layers]))),
        bias=float(np.mean([each.bias for each in layers])),
        bias_error=_error_of_mean([each.bias_error for each in layers]),
        out_of_reach=float(np.mean([each.out_of_reach for each in layers])),
    )


def pooled_ratio_error(layers: Sequence[RatioError]) -> RatioError:
    """Return the mean of squares over layers; layers draw features of their own."""
    return RatioError(
        error=float(np.sqrt(np.mean([each.error**2 for each in layers]))),
        spread=float(np.sqrt(np.mean([each.spread**2 for each in layers]))),
        squared_bias=float(np.mean([each.squared_bias for each in layers])),
        squared_bias_error=_error_of_mean([e.squared_bias_error for e in layers]),
    )


def _error_of_mean(errors: Sequence[float]) -> float:
    return math.sqrt(sum(error**2 for error in errors)) / len(errors)


def _moments(
    mean: Float[np.ndarray, " m"], mean_square: Float[np.ndarray, " m"], num_draws: int
) -> tuple[float, float]:
    """Return the estimates of the squared expectation and of the variance."""
    # Rounding alone can make the difference negative.
    variance = (mean_square - mean**2).clip(min=0) * num_draws / (num_draws - 1)
    return float(np.mean(mean**2 - variance / num_draws)), float(np.mean(variance))


def _jackknife_error(errors: Float[np.ndarray, "S m"]) -> float:
    """Return the standard error of the squared bias, leaving out one draw at a time."""
    num_draws = len(errors)
    total, squares = errors.sum(axis=0), np.sum(errors**2, axis=0)
    others = num_draws - 1
    left = np.array(
        [
            _moments((total - one) / others, (squares - one**2) / others, others)[0]
            for one in errors
        ]
    )
    return float(np.sqrt(others / num_draws * np.sum((left - left.mean()) ** 2)))


def _enough_draws(drawn: np.ndarray) -> int:
    if len(drawn) < 3:
        raise ValueError(
            f"errors must come from at least 3 draws of the features; got {len(drawn)}. "
            "Raise study.error_seeds."
        )
    return len(drawn)
