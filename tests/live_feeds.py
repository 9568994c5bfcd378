"""Feeds for tests of live forecasts: their words, their lines, and streams that record."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from worlds import sample_world

from infoset.data import CausalScale, Change, History, Samples
from infoset.models.attention_forecaster import Attention, AttentionForecaster
from infoset.models.event_window import StreamEvent
from infoset.models.forecasts import LEVELS, Forecasts
from infoset.models.settings import NetworkSize, Training
from infoset.models.stream_snapshot import StreamSnapshot
from infoset.models.streaming import Backend, Stream
from infoset.pipeline.live.session import Session
from infoset.pipeline.live.vocabulary import StreamWords, Vocabulary

HOUR = 3_600_000_000_000
START = 1_704_067_200_000_000_000  # 2024-01-01 UTC
DIFFERENCE = Change(column="value", kind="difference")


def words(*, entities: tuple[str, ...] = ("A", "B")) -> Vocabulary:
    """Name two streams: closes with a derived change, and a macro value."""
    bars = StreamWords(
        "bars/1d", 0, ("change", "value"), DIFFERENCE, is_scheduled=False
    )
    macro = StreamWords("macro/CPI", 1, ("value",), None, is_scheduled=False)
    streams = {words.name: words for words in (bars, macro)}
    return Vocabulary(("A", "B"), entities, streams, width=2)


def said(**changes: Any) -> dict[str, Any]:
    """Return an event of A as JSON would hold it; None takes a name out."""
    event = {
        "entity": "A",
        "stream": "bars/1d",
        "event_time": START,
        "available_at": START + HOUR,
        "value": 100.0,
    } | changes
    return {name: value for name, value in event.items() if value is not None}


def line(**changes: Any) -> bytes:
    return json.dumps(said(**changes)).encode()


def request(entity: str, at: int) -> bytes:
    return json.dumps({"forecast": {"entity": entity, "at": at}}).encode()


@dataclass
class RecordingStream:
    """Remembers what it was fed; its median says how many events that were."""

    events: list[StreamEvent] = field(default_factory=list)
    backend: Backend = "torch"

    def update(self, event: StreamEvent) -> None:
        assert not self.events or event.available_at >= self.events[-1].available_at
        self.events.append(event)

    def forecast(self, at: int) -> Forecasts:
        assert not self.events or at >= self.events[-1].available_at
        spread = np.linspace(-1, 1, len(LEVELS))
        return Forecasts(len(self.events) + spread[None])

    def fork(self) -> Stream:
        return RecordingStream(list(self.events))

    def snapshot(self) -> StreamSnapshot:
        raise NotImplementedError

    @property
    def state_bytes(self) -> int:
        return 0


def session(
    *,
    boundary: Any = "inclusive",
    history: History | None = None,
    on_request: bool = False,
    vocabulary: Vocabulary | None = None,
    streams: dict[str, Stream] | None = None,
) -> Session:
    vocabulary = vocabulary or words()
    made: dict[str, Stream] = {name: RecordingStream() for name in vocabulary.entities}
    return Session(
        streams or made,
        vocabulary,
        boundary=boundary,
        history=history or History(),
        on_request=on_request,
    )


def fed(session: Session, *lines: bytes) -> list[dict[str, Any]]:
    """Return what a session says to lines, and at the end of them."""
    answers = []
    for number, one in enumerate(lines, start=1):
        answers += session.take(number, one)
    return [dict(answer.content) for answer in [*answers, *session.complete()]]


@cache
def fitted(
    kind: Attention, history: History, *, seed: int = 1
) -> tuple[Samples, AttentionForecaster]:
    """Return scaled samples, and a forecaster that differs from its baseline."""
    world: Any = sample_world  # which has no annotations
    samples = world().samples(history)
    past = np.arange(150)
    scale = CausalScale.fit(samples.take(past), decay=0.9, prior_weight=2.0)
    samples = scale.apply(samples)
    forecaster = AttentionForecaster(
        kind,
        size=NetworkSize(width=8, num_layers=2, num_heads=2),
        training=Training(max_steps=1, check_every=1, batch_size=32, patience=9),
        seed=seed,
    )
    forecaster.fit(samples.take(past[:100]), samples.take(past[100:]))
    move_off_baseline(forecaster)
    return samples, forecaster


def move_off_baseline(forecaster: AttentionForecaster, *, size: float = 0.3) -> None:
    """Let events move a network's forecasts, as long training would."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        head = forecaster._trained().head
        head.adjust.weight.normal_(0, size, generator=generator)


def damaged(path: Path, place: int) -> None:
    """Change one byte of a file."""
    content = bytearray(path.read_bytes())
    content[place] ^= 0xFF
    path.write_bytes(bytes(content))
