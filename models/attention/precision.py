"""The number types that sums are kept in."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from .state import LinearState


def state_dtype(*rows: Tensor, initial_state: LinearState | None = None) -> torch.dtype:
    """Return the type to compute in: float32 at least, float64 if anything is."""
    dtype = torch.float32
    for x in rows:
        dtype = torch.promote_types(dtype, x.dtype)
    if initial_state is not None:
        dtype = torch.promote_types(dtype, initial_state.S.dtype)
    return dtype


def full_precision(device: torch.device) -> AbstractContextManager[object]:
    """Switch automatic half precision off, where it is on."""
    available = torch.amp.is_autocast_available(device.type)
    if available and torch.is_autocast_enabled(device.type):
        return torch.autocast(device.type, enabled=False)
    return nullcontext()
