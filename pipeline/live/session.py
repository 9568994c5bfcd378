"""A live session: events of one instant together, then the forecasts that see them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from infoset.data.events import MARKET_WIDE, Boundary
from infoset.data.timeline import History, period_starts
from infoset.models.event_window import StreamEvent
from infoset.models.streaming import Stream

from .answers import Answer, Counts, late_notice, numbers, too_early, two_values
from .event_lines import FeedEvent, ForecastRequest, read_line
from .feed_instants import text_of
from .known_periods import KnownPeriods
from .vocabulary import Vocabulary

_EVER = np.iinfo(np.int64).min
# What a line may raise. It is in the journal by then: if it were not refused, it would
# stop the stream and every restart.
_REFUSED = (ValueError, ArithmeticError, RecursionError)


@dataclass
class EntityFeed:
    """How far one entity's stream is.

    Attributes
    ----------
    stream : Stream
    newest : int
        Availability of the newest event in it (UTC nanoseconds).
    asked : int
        Time of the newest forecast that was given.
    count : int
        Events in it, of its newest period where the history is `since`.
    period : int
        Start of that period.
    is_late : bool
        Whether an event came late since the last forecast.
    """

    stream: Stream
    newest: int = _EVER
    asked: int = _EVER
    count: int = 0
    period: int = _EVER
    is_late: bool = False


class Session:
    """All entities' streams, fed by the lines of one feed.

    Lines with one availability that follow one another are one instant: they are put
    in order and applied together when it is complete, which a line of another instant,
    a request for a forecast that sees them, or `complete` says.

    Parameters
    ----------
    streams : Mapping[str, Stream]
        By entity.
    words : Vocabulary
    boundary : {'inclusive', 'strict'}
    history : History
    on_request : bool
        Forecast only where a line asks for it, not after each instant.
    """

    def __init__(
        self,
        streams: Mapping[str, Stream],
        words: Vocabulary,
        *,
        boundary: Boundary,
        history: History,
        on_request: bool,
    ) -> None:
        self.feeds = {name: EntityFeed(streams[name]) for name in sorted(streams)}
        self.counts = Counts()
        self._words = words
        self._is_inclusive = boundary == "inclusive"
        self._history = history
        self._on_request = on_request
        self._known = KnownPeriods()
        self._instant: list[tuple[int, bytes, FeedEvent]] = []
        self._period = (_EVER, _EVER)

    @property
    def is_waiting(self) -> bool:
        """Whether there are events of an instant that may not be complete."""
        return bool(self._instant)

    def take(self, number: int, line: bytes, *, quiet: bool = False) -> list[Answer]:
        """Take in one line of the feed.

        Parameters
        ----------
        number : int
            Of the line, from 1.
        line : bytes
        quiet : bool
            Do everything but the forecasts: they were given before.
        """
        self.counts.lines += 1
        try:
            said = read_line(line, self._words)
        except _REFUSED as error:
            return [self._refusal(number, error)]
        if said is None:
            return []
        if isinstance(said, ForecastRequest):
            return list(self._requested(number, said, quiet=quiet))
        answers: list[Answer] = []
        if self._instant and said.available_at != self._instant[0][2].available_at:
            answers = self.complete(quiet=quiet)
        if said.entity != MARKET_WIDE and said.entity not in self.feeds:
            self.counts.not_streamed += 1
        else:
            self._instant.append((number, line, said))
        return answers

    def complete(self, *, quiet: bool = False) -> list[Answer]:
        """Apply the events of the instant; forecast the entities that they touch."""
        events = sorted(self._instant, key=_timeline_order)
        self._instant = []
        answers: list[Answer] = []
        touched: set[str] = set()
        told: dict[tuple[object, ...], FeedEvent] = {}
        for number, _, event in events:
            try:
                if _is_repeated(event, told):
                    self.counts.duplicates += 1
                    continue
                late = self._apply(event, touched)
            except _REFUSED as error:
                answers.append(self._refusal(number, error))
                continue
            if late:
                answers.append(late_notice(number, event, late))
        if not self._on_request:
            newest = max((number for number, _, _ in events), default=0)
            answers += [
                self._forecast(name, self._first_sight(name), newest, quiet=quiet)
                for name in sorted(touched)
            ]
        return answers

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return all but the streams, as JSON values and tensors."""
        names, tensors = self._known.state()
        about = {
            "feeds": [
                [name, feed.newest, feed.asked, feed.count, feed.period, feed.is_late]
                for name, feed in self.feeds.items()
            ],
            "instant": [[number, line.decode()] for number, line, _ in self._instant],
            "series": names,
        }
        return about, tensors

    def restore(self, about: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Go on from what `state` described."""
        self._known = KnownPeriods.restored(about["series"], tensors)
        for name, newest, asked, count, period, is_late in about["feeds"]:
            stream = self.feeds[name].stream
            self.feeds[name] = EntityFeed(
                stream, newest, asked, count, period, is_late=is_late
            )
        for number, text in about["instant"]:
            self.take(number, text.encode())
        self.counts = Counts()

    def _apply(self, event: FeedEvent, touched: set[str]) -> list[str]:
        """Put an event into the streams that it is about; return for whom it is late."""
        revision, values = self._known.complete(event)
        self.counts.events += 1
        wide = np.full(self._words.width, np.nan)
        wide[: len(values)] = values
        is_own = event.entity != MARKET_WIDE
        late = []
        for name in (event.entity,) if is_own else self.feeds:
            feed = self.feeds[name]
            available_at = event.available_at
            if self._is_late(feed, available_at):
                # Nothing is put before what is there: it is known from then on.
                available_at = max(available_at, feed.newest)
                feed.is_late = True
                late.append(name)
            feed.stream.update(
                StreamEvent(
                    stream=event.stream.code,
                    own=is_own,
                    event_time=event.event_time,
                    available_at=available_at,
                    revision=revision,
                    values=wide,
                )
            )
            self._count(feed, available_at)
            touched.add(name)
        self.counts.late += bool(late)
        return late

    def _is_late(self, feed: EntityFeed, available_at: int) -> bool:
        return available_at < feed.newest or self._sees(feed.asked, available_at)

    def _count(self, feed: EntityFeed, available_at: int) -> None:
        period = self._period_of(available_at)
        feed.count = feed.count + 1 if period == feed.period else 1
        feed.period = period
        feed.newest = available_at

    def _requested(
        self, number: int, asked: ForecastRequest, *, quiet: bool
    ) -> Iterator[Answer]:
        if self._instant and self._sees(asked.at, self._instant[0][2].available_at):
            yield from self.complete(quiet=quiet)
        newest = self.feeds[asked.entity].newest
        if newest != _EVER and not self._sees(asked.at, newest):
            yield self._refusal(number, too_early(asked, newest))
            return
        try:
            answer = self._forecast(asked.entity, asked.at, number, quiet=quiet)
        except _REFUSED as error:  # an instant beyond the calendar
            answer = self._refusal(number, error)
        yield answer

    def _sees(self, at: int, available_at: int) -> bool:
        return available_at <= at if self._is_inclusive else available_at < at

    def _first_sight(self, name: str) -> int:
        """Return the first instant at which an entity's newest event is visible."""
        return self.feeds[name].newest + (not self._is_inclusive)

    def _forecast(self, name: str, at: int, line: int, *, quiet: bool) -> Answer:
        feed = self.feeds[name]
        about: dict[str, object] = {"entity": name, "at": text_of(at), "line": line}
        about["num_events"] = self._num_events(feed, at)
        feed.asked = max(feed.asked, at)
        late = {"late": True} if feed.is_late else {}
        feed.is_late = False
        if quiet:
            return Answer(about, is_forecast=True)
        self.counts.forecasts += 1
        try:
            about |= numbers(feed.stream.forecast(at))
        except ValueError as error:  # JSON knows no NaN, and neither do readers
            about["undefined"] = str(error)
        return Answer(about | late, is_forecast=True)

    def _num_events(self, feed: EntityFeed, at: int) -> int:
        if self._history.last is not None:
            return min(feed.count, self._history.last)
        return feed.count if self._period_of(at) == feed.period else 0

    def _period_of(self, at: int) -> int:
        if self._history.since is None:
            return 0
        if self._period[0] != at:  # the calendar is slow, and instants come in runs
            start = period_starts(np.array([at], np.int64), self._history)
            self._period = at, int(start[0])
        return self._period[1]

    def _refusal(self, number: int, error: Exception) -> Answer:
        self.counts.refused += 1
        return Answer({"line": number, "error": str(error)}, is_forecast=False)


def _is_repeated(event: FeedEvent, told: dict[tuple[object, ...], FeedEvent]) -> bool:
    """Return whether an event of one instant was told before; remember it.

    Raises
    ------
    ValueError
        If it was told with other values.
    """
    about = event.stream.code, event.entity
    earlier = told.setdefault(
        (*about, event.event_time, event.sequence, event.revision), event
    )
    if earlier is not event and earlier != event:
        raise two_values(event)
    return earlier is not event


def _timeline_order(
    item: tuple[int, bytes, FeedEvent],
) -> tuple[int, int, int, int, bool]:
    """Return the order within an instant; at a full tie the market's event is first."""
    event = item[2]
    is_own = event.entity != MARKET_WIDE
    when = event.event_time, event.sequence, event.revision or 0
    return event.stream.code, *when, is_own
