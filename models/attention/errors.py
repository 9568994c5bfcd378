"""What the attention core refuses, and how it says so."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class NonFiniteError(ValueError):
    """A number that takes part in a forecast is not finite."""


def check_finite(
    q: Tensor | None,
    k: Tensor | None,
    v: Tensor | None,
    mask: Tensor | None = None,
    *,
    where: str,
    decay: Tensor | None = None,
) -> None:
    """Refuse visible rows of q, k and v that are not finite, and negative decay.

    The attention functions do not call this: it reads the data and so waits for the
    device. Callers decide when to look.

    Parameters
    ----------
    q, k, v : Tensor of shape [B, H, T, ...]
        Rows that `mask` hides may hold anything.
    mask : bool Tensor of shape [B, T], optional
        True = a real event.
    where : str
        Place named in the message, such as "layer 2".
    decay : Tensor of shape [B, H, T], optional
        Forgetting exponents, of hidden rows too.

    Raises
    ------
    NonFiniteError
        For the first visible number that is nan or infinite, and for a decay that is.
    ValueError
        For a negative decay.
    """
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x is None:
            continue
        bad = ~torch.isfinite(x.detach()).all(-1)
        if mask is not None:
            bad &= mask[:, None, :]
        if bad.any():
            _refuse(name, x, bad, where)
    if decay is not None:
        bad = ~torch.isfinite(decay.detach())
        if bad.any():
            _refuse("decay", decay[..., None], bad, where)
        _refuse_negative(decay.detach(), where)


def _refuse(name: str, x: Tensor, bad: Tensor, where: str) -> None:
    batch, head, position = torch.nonzero(bad)[0].tolist()
    row = x.detach()[batch, head, position]
    value = row[~torch.isfinite(row)][0].item()
    message = (
        f"{name} must be finite in visible rows; got {value} "
        f"({where}, batch row {batch}, head {head}, position {position}). "
        "Look for missing or unscaled inputs, or for training that diverged."
    )
    raise NonFiniteError(message)


def _refuse_negative(decay: Tensor, where: str) -> None:
    negative = torch.nonzero(decay < 0)
    if len(negative):
        batch, head, position = negative[0].tolist()
        message = (
            f"decay must not be negative; got {decay[batch, head, position].item():.6g} "
            f"({where}, batch row {batch}, head {head}, position {position}). "
            "Rates are at least zero and rows are in order of time."
        )
        raise ValueError(message)


def check_shapes(
    k: Tensor,
    v: Tensor,
    *,
    q: Tensor | None = None,
    mask: Tensor | None = None,
    decay: Tensor | None = None,
) -> None:
    """Refuse tensors whose axes do not belong together.

    Raises
    ------
    ValueError
        If an axis differs from the others'.
    TypeError
        If `mask` is not boolean.
    """
    if k.ndim != 4:
        message = f"k must be [B, H, T, K]; got {list(k.shape)}."
        raise ValueError(message)
    rows = k.shape[:3]
    if v.ndim != 4 or v.shape[:3] != rows:
        _refuse_axes("v", v[..., 0] if v.ndim == 4 else v, rows)
    if q is not None and q.shape != k.shape:
        _refuse_axes("q", q, k.shape)
    if decay is not None and decay.shape != rows:
        _refuse_axes("decay", decay, rows)
    if mask is not None:
        if mask.shape != (rows[0], rows[2]):
            _refuse_axes("mask", mask, (rows[0], rows[2]))
        if mask.dtype != torch.bool:
            message = (
                f"mask must be boolean with True for a real event; got {mask.dtype}."
            )
            raise TypeError(message)


def check_state(kept: Tensor, v: Tensor) -> None:
    """Refuse an initial state [B, H, *, V] of other sequences than those of v.

    Raises
    ------
    ValueError
        If batch, heads or width of the values differ.
    """
    if kept.shape[:2] != v.shape[:2] or kept.shape[-1] != v.shape[-1]:
        batch, heads, _, width = v.shape
        message = (
            f"initial_state must hold values [{batch}, {heads}, ..., {width}] like v; "
            f"got {list(kept.shape)}."
        )
        raise ValueError(message)


def _refuse_axes(name: str, x: Tensor, expected: Sequence[int]) -> None:
    message = f"{name} must have axes {list(expected)} like k; got {list(x.shape)}."
    raise ValueError(message)
