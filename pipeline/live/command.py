"""`infoset stream`: events in, forecasts out, nothing acknowledged is ever lost."""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch

from infoset.models.stream_making import ChosenBackend
from infoset.models.streaming import Stream

from .feeds import Feed, LineFeed, Position, rest_of
from .live_stream import LiveStream, Output
from .replay import Replay
from .session import Session
from .state_folder import StateFolder
from .stop_signal import StopSignal
from .stored_model import StoredModel
from .tape import Tape
from .vocabulary import Vocabulary

_STANDARD_INPUT, _STANDARD_INPUT_FILE = "-", 0
_PARQUET = b"PAR1"
_PIPE, _FILE = "pipe", "file"
FAILED = 1


@dataclass(frozen=True)
class StreamOptions:
    """How a feed is read.

    Attributes
    ----------
    events : str
        A file of JSON lines, a Parquet tape, or `-` for standard input.
    state : Path, optional
        Where everything is kept; default: in the run's folder.
    entities : sequence of str
        Default: all.
    on_request : bool
        Forecast only where a line asks.
    replay : float, optional
        Recorded speed times this; default: as fast as possible.
    settle_seconds : float
        After that much silence of a pipe an instant is complete.
    backend : {'auto', 'torch', 'numba'}
        What computes; may differ from restart to restart.
    """

    events: str
    state: Path | None = None
    entities: Sequence[str] = ()
    on_request: bool = False
    replay: float | None = None
    settle_seconds: float = 0.25
    backend: ChosenBackend = "auto"


def stream_events(model: StoredModel, run_folder: Path, options: StreamOptions) -> int:
    """Take in a feed to its end, or until SIGTERM; return the exit code.

    Parameters
    ----------
    model : StoredModel
    run_folder : Path
    options : StreamOptions

    Raises
    ------
    ValueError
        If the feed, the state or an option is refused; nothing was taken in then.
    """
    torch.set_num_threads(1)
    forecaster = model.load()
    about = forecaster.fitted_on()
    words = Vocabulary.of(about, model.experiment, options.entities)
    experiment = model.experiment

    def make_session(streams: Mapping[str, Stream]) -> Session:
        return Session(
            streams,
            words,
            boundary=experiment.boundary,
            history=about.history,
            on_request=options.on_request,
        )

    settings = {
        "entities": list(words.entities),
        "boundary": experiment.boundary,
        "on_request": options.on_request,
    }
    output = Output(sys.stdout.buffer, sys.stderr.buffer)
    place = options.state or run_folder / "streams" / model.name
    with (
        StopSignal() as stop,
        _opened(options, words, stop) as (opened, source),
        StateFolder.locked(place) as folder,
    ):
        live = LiveStream(
            *(folder, forecaster, make_session, settings, output),
            backend=options.backend,
        )
        try:
            feed = _begun(live, opened, source)
            replay = Replay(options.replay or 0.0, words, stop)
            settle = options.settle_seconds if source == _PIPE else None
            _take_all(live, feed, replay, stop, settle)
        except BrokenPipeError:
            live.abandon()
            _forget_output()
            return FAILED
        live.close()
        end = signal.Signals(stop.received).name if stop.received else "end of feed"
        told = {"end": end, **asdict(live.session.counts)}
        output.notices.write(json.dumps(told).encode() + b"\n")
        output.flush()
    return 0


def _take_all(
    live: LiveStream,
    feed: Feed,
    replay: Replay,
    stop: StopSignal,
    settle: float | None,
) -> None:
    while not stop.received:
        lines = feed.read(settle if live.session.is_waiting else None)
        if stop.received:  # what was read is not acknowledged
            return
        if not lines:
            live.complete()
        if lines is None:
            return
        _take(live, lines, replay, stop)


def _take(
    live: LiveStream, lines: list[bytes], replay: Replay, stop: StopSignal
) -> None:
    for part, is_complete in replay.parts(lines):
        for piece in live.pieces(part):
            if stop.received:
                return
            live.take(piece)
        if is_complete:
            live.complete()


def _begun(live: LiveStream, opened: Callable[[], Feed], source: str) -> Feed:
    """Go on with the feed that the state knows, or begin another one."""
    same: Feed | None = None
    if live.source == source == _PIPE:
        same = opened()
    elif live.source == source:
        same = rest_of(opened, live.position)
        if same is None:
            _require_other(live, opened())
    feed = same or opened()
    live.begin(source, is_new=same is None)
    return feed


def _require_other(live: LiveStream, feed: Feed) -> None:
    """Refuse the file that was taken already, if its lines have changed since."""
    lines = feed.read(None)
    if lines and Position().after(lines[0]).chain == live.first:
        raise ValueError(
            "--events must begin with the lines that were taken from it, or be another "
            f"file; got the same first line, and a change in the first "
            f"{live.position.number} lines. Put them back, or take the changed file from "
            "its start with another --state."
        )


@contextmanager
def _opened(
    options: StreamOptions, words: Vocabulary, stop: StopSignal
) -> Iterator[tuple[Callable[[], Feed], str]]:
    """Yield what opens the feed from its start, and whether it is a pipe or a file."""
    if options.events == _STANDARD_INPUT:
        _require_tape(options)
        yield partial(LineFeed, _STANDARD_INPUT_FILE, stop), _PIPE
        return
    path = Path(options.events)
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise ValueError(
            "--events must be a file of JSON lines, a Parquet tape, or - for standard "
            f"input; got {path} ({error.strerror}). Correct it."
        ) from error
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            _require_tape(options)
            yield partial(LineFeed, file, stop), _PIPE
        elif os.pread(file, len(_PARQUET), 0) == _PARQUET:
            yield partial(Tape, path, words), _FILE
        else:
            yield partial(_from_start, file, stop), _FILE
    finally:
        os.close(file)


def _from_start(file: int, stop: StopSignal) -> LineFeed:
    os.lseek(file, 0, os.SEEK_SET)
    return LineFeed(file, stop)


def _require_tape(options: StreamOptions) -> None:
    if options.replay is not None:
        raise ValueError(
            "--replay must have a stored tape, which knows when its events came; got "
            f"--events {options.events}. Name a file, or leave out --replay."
        )


def _forget_output() -> None:
    """Say that nobody reads any more, and let nothing be written at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.stderr.write(
        "infoset: forecasts must be read by somebody; the pipe was closed. The state is "
        "kept; stream again to go on.\n"
    )
