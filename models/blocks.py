"""The causal layers: attention with optional forgetting, and the feed-forward part."""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from .kernels import AttentionKernel, State

_SHORTEST_DAYS, _LONGEST_DAYS = 2.0, 250.0


class Forgetting(nn.Module):
    """A learned rate per head (1/day) at which older events lose weight.

    The heads start with half-lives spread from two days to a year of sessions.
    """

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        spread = torch.linspace(0, 1, num_heads) if num_heads > 1 else torch.ones(1) / 2
        half_life = _SHORTEST_DAYS * (_LONGEST_DAYS / _SHORTEST_DAYS) ** spread
        self.log_rate = nn.Parameter(torch.log(math.log(2) / half_life))

    def forward(self, elapsed_days: Float[Tensor, "B T"]) -> Float[Tensor, "B H T"]:
        """Return the exponent by which the state fades before each event: (16)."""
        exponent: Tensor = self.log_rate.exp()[:, None] * elapsed_days[:, None, :]
        return exponent


class Heads(nn.Module):
    """Projections to and from H heads; shared by the blocks and the readout."""

    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.query = nn.Linear(width, width, bias=False)
        self.key_value = nn.Linear(width, 2 * width, bias=False)
        self.output = nn.Linear(width, width, bias=False)

    def queries(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B H T K"]:
        """Return the queries of each head."""
        return self._split(self.query(x))

    def keys_values(
        self, x: Float[Tensor, "B T D"]
    ) -> tuple[Float[Tensor, "B H T K"], Float[Tensor, "B H T V"]]:
        """Return the keys and values of each head."""
        key, value = self.key_value(x).chunk(2, dim=-1)
        return self._split(key), self._split(value)

    def merge(self, y: Float[Tensor, "B H T V"]) -> Float[Tensor, "B T D"]:
        """Return the heads' outputs as one vector per row."""
        merged: Tensor = self.output(y.transpose(1, 2).flatten(2))
        return merged

    def _split(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B H T K"]:
        batch, rows, width = x.shape
        heads = x.reshape(batch, rows, self.num_heads, width // self.num_heads)
        return heads.transpose(1, 2)


class FeedForward(nn.Sequential):
    """Two linear layers with a GELU between."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__(
            nn.Linear(width, 4 * width),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(4 * width, width),
        )


class CausalBlock(nn.Module):
    """Pre-norm attention and feed-forward; row t reads rows up to t only."""

    def __init__(
        self,
        kernel: AttentionKernel,
        *,
        width: int,
        num_heads: int,
        dropout: float,
        forgetting: bool,
    ) -> None:
        super().__init__()
        self.kernel = kernel
        self.heads = Heads(width, num_heads)
        self.forgetting = Forgetting(num_heads) if forgetting else None
        self.before_attention = nn.LayerNorm(width)
        self.before_feed_forward = nn.LayerNorm(width)
        self.feed_forward = FeedForward(width, dropout)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        elapsed_days: Float[Tensor, "B T"],
        *,
        mask: Bool[Tensor, "B T"] | None = None,
        state: State | None = None,
    ) -> tuple[Float[Tensor, "B T D"], State]:
        """Return the rows' new vectors and the state after the last one."""
        normal = self.before_attention(x)
        key, value = self.heads.keys_values(normal)
        attended, state = self.kernel.attend(
            self.heads.queries(normal),
            key,
            value,
            mask=mask,
            decay=self.forgetting(elapsed_days) if self.forgetting else None,
            state=state,
        )
        x = x + self.dropout(self.heads.merge(attended))
        x = x + self.dropout(self.feed_forward(self.before_feed_forward(x)))
        return x, state


class Readout(nn.Module):
    """One attention layer whose queries come from the forecasts' own clocks.

    Keys and values come from the events. Forecasts only read, so asking twice, or at
    more times, changes nothing.
    """

    def __init__(
        self,
        kernel: AttentionKernel,
        *,
        width: int,
        num_heads: int,
        dropout: float,
        forgetting: bool,
    ) -> None:
        super().__init__()
        self.kernel = kernel
        self.heads = Heads(width, num_heads)
        self.forgetting = Forgetting(num_heads) if forgetting else None
        self.events_norm = nn.LayerNorm(width)
        self.query_norm = nn.LayerNorm(width)
        self.before_feed_forward = nn.LayerNorm(width)
        self.feed_forward = FeedForward(width, dropout)
        self.dropout = nn.Dropout(dropout)

    def absorb(
        self,
        events: Float[Tensor, "B T D"],
        elapsed_days: Float[Tensor, "B T"],
        *,
        mask: Bool[Tensor, "B T"] | None = None,
        state: State | None = None,
    ) -> State:
        """Return the state that holds the events."""
        key, value = self.heads.keys_values(self.events_norm(events))
        decay = self.forgetting(elapsed_days) if self.forgetting else None
        return self.kernel.absorb(key, value, mask=mask, decay=decay, state=state)

    def read(
        self, queries: Float[Tensor, "B P D"], state: State
    ) -> Float[Tensor, "B P D"]:
        """Return what each query makes of the whole state."""
        query = self.heads.queries(self.query_norm(queries))
        return self._finish(queries, self.kernel.read(query, state))

    def read_prefixes(
        self,
        queries: Float[Tensor, "B P D"],
        events: Float[Tensor, "B T D"],
        elapsed_days: Float[Tensor, "B T"],
        *,
        mask: Bool[Tensor, "B T"],
        stop: Int[Tensor, "B P"],
    ) -> Float[Tensor, "B P D"]:
        """Return what query p makes of the first `stop[p]` events, in one pass.

        The queries (ordered by `stop`) are placed between the events as rows that add
        nothing: their keys are hidden, their outputs are what they read.
        """
        num_points, num_events = stop.shape[1], mask.shape[1]
        point = torch.arange(num_points, device=stop.device)
        event = torch.arange(num_events, device=stop.device).repeat(len(stop), 1)
        query_at = stop + point
        event_at = event + torch.searchsorted(stop.contiguous(), event, right=True)
        key, value = self.heads.keys_values(self.events_norm(events))
        query = self.heads.queries(self.query_norm(queries))
        elapsed = _placed(elapsed_days[..., None], event_at, num_points)[..., 0]
        shown = _placed(mask[..., None], event_at, num_points)[..., 0]
        attended, _ = self.kernel.attend(
            _placed_heads(query, query_at, num_events),
            _placed_heads(key, event_at, num_points),
            _placed_heads(value, event_at, num_points),
            mask=shown,
            decay=self.forgetting(elapsed) if self.forgetting else None,
            state=None,
        )
        place = query_at[:, None, :, None].expand(
            -1, attended.shape[1], -1, attended.shape[3]
        )
        return self._finish(queries, attended.gather(2, place))

    def _finish(
        self, queries: Float[Tensor, "B P D"], attended: Float[Tensor, "B H P V"]
    ) -> Float[Tensor, "B P D"]:
        x = queries + self.dropout(self.heads.merge(attended))
        ahead: Tensor = x + self.dropout(self.feed_forward(self.before_feed_forward(x)))
        return ahead


def _placed(rows: Tensor, place: Tensor, num_others: int) -> Tensor:
    """Put rows [B, T, *] at their places among T + `num_others`; zeros elsewhere."""
    shape = (rows.shape[0], rows.shape[1] + num_others, rows.shape[2])
    empty = torch.zeros(shape, dtype=rows.dtype, device=rows.device)
    return empty.scatter(1, place[..., None].expand_as(rows), rows)


def _placed_heads(rows: Tensor, place: Tensor, num_others: int) -> Tensor:
    """Do the same for [B, H, T, K]."""
    batch, num_heads, _, width = rows.shape
    flat = _placed(rows.transpose(1, 2).flatten(2), place, num_others)
    return flat.reshape(batch, -1, num_heads, width).transpose(1, 2)
