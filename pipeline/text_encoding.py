"""Which streams of an experiment an encoder reads, and the log with its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from infoset.data.encoded_streams import encodings, with_embeddings
from infoset.data.events import EventLog
from infoset.data.sources.declaration import TextColumn
from infoset.data.sources.nearest import did_you_mean
from infoset.data.text_encoders import TextEncoder, checked_encoder, find_encoder

from .config import Experiment
from .run_files import remove_leftovers


@dataclass(frozen=True)
class _Wanted:
    encoder: str
    keep_text: bool


def required_encoders(
    experiment: Experiment, given: Mapping[str, TextEncoder]
) -> dict[str, TextEncoder]:
    """Return the encoders that an experiment declares, by name.

    Parameters
    ----------
    experiment : Experiment
    given : Mapping[str, TextEncoder]
        The user's own; others are looked for among the installed ones.

    Raises
    ------
    ValueError
        If one is not to be found, is wrong about itself, or is given for nothing.
    TypeError
        If one is no encoder.
    """
    names = {text.encoder for text in _declared_texts(experiment)}
    wanted = {name for name in names if name is not None}
    wanted |= set(experiment.encoders.values())
    for name, encoder in given.items():
        checked_encoder(encoder, name)
        if name not in wanted:
            declared = ", ".join(sorted(wanted)) or "(none)"
            raise ValueError(
                f"encoders that are given must be declared ({declared}); got {name!r}. "
                f"{did_you_mean(name, sorted(wanted))}Declare `text: {{encoder: {name}}}` "
                "in a source, or a stream under `encoders`."
            )
    return {name: find_encoder(name, given) for name in sorted(wanted)}


def with_encoded_texts(
    experiment: Experiment,
    log: EventLog,
    encoders: Mapping[str, TextEncoder],
    *,
    folder: Path,
) -> EventLog:
    """Return the log with every declared text turned into numbers; see `with_embeddings`.

    The folder is one run's own: nobody else may write there meanwhile.

    Raises
    ------
    ValueError
        If a declared stream is not in the log, has no text, or two declarations differ.
    """
    for encoder_folder in folder.glob("*/"):
        remove_leftovers(encoder_folder)  # of a run that was cut off
    made = encodings(log)
    for stream, wanted in _wanted(experiment, log).items():
        encoder = encoders[wanted.encoder]
        if stream in made and made[stream].digest == encoder.digest:
            continue
        log = with_embeddings(
            log, stream, encoder, folder=folder, keep_text=wanted.keep_text
        )
    return log


def require_encoded(experiment: Experiment, log: EventLog) -> None:
    """Refuse a log in which a declared text is still a text.

    Raises
    ------
    ValueError
        With the stream and its encoder.
    """
    made = encodings(log)
    for stream, wanted in _wanted(experiment, log).items():
        if stream not in made or made[stream].name != wanted.encoder:
            raise ValueError(
                f"texts of stream {stream!r} must be encoded by {wanted.encoder!r} "
                "before information sets are cut; got them as they were read. Call "
                "`with_encoded_texts` on the log."
            )


def _declared_texts(experiment: Experiment) -> list[TextColumn]:
    texts = [getattr(source, "text", None) for source in experiment.sources]
    return [text for text in texts if isinstance(text, TextColumn)]


def _wanted(experiment: Experiment, log: EventLog) -> dict[str, _Wanted]:
    """Return what is declared for each stream that an encoder reads."""
    found: dict[str, _Wanted] = {}
    for source in experiment.sources:
        text = getattr(source, "text", None)
        if isinstance(text, TextColumn) and text.encoder is not None:
            for stream in source.streams(log):
                _add(found, stream, _Wanted(text.encoder, text.keep_text))
    for stream, name in experiment.encoders.items():
        if stream not in log.streams:
            raise ValueError(
                f"encoders must name streams of the log ({', '.join(log.streams)}); got "
                f"{stream!r}. {did_you_mean(stream, log.streams)}Correct `encoders`."
            )
        _add(found, stream, _Wanted(name, keep_text=False))
    return found


def _add(found: dict[str, _Wanted], stream: str, wanted: _Wanted) -> None:
    first = found.setdefault(stream, wanted)
    if first != wanted:
        raise ValueError(
            f"texts of stream {stream!r} must be encoded in one way; got {first.encoder} "
            f"(keep_text {first.keep_text}) and {wanted.encoder} (keep_text "
            f"{wanted.keep_text}). Declare it alike, or name another stream."
        )
