"""What the lines of a feed may say: the names that a model was fitted with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from infoset.data.changes import CHANGE, Change
from infoset.data.events import MARKET_WIDE, EventLog
from infoset.data.sources.nearest import did_you_mean
from infoset.data.sources.presets.store_source import StoreSource
from infoset.models.fitted import FittedOn
from infoset.pipeline.config import Experiment
from infoset.pipeline.preparation import declared_changes


@dataclass(frozen=True)
class StreamWords:
    """What an event of one stream consists of.

    Attributes
    ----------
    name : str
    code : int
        Its number in the model.
    columns : tuple of str
        Numeric values, in the order of the stream's channels.
    change : Change or None
        How `change` follows from another value where a line does not give it.
    is_scheduled : bool
        Whether an event may be known before it happens.
    """

    name: str
    code: int
    columns: tuple[str, ...]
    change: Change | None
    is_scheduled: bool


@dataclass(frozen=True)
class Vocabulary:
    """Names of entities, streams and values.

    Attributes
    ----------
    known : tuple of str
        All entities that the model was fitted for.
    entities : tuple of str
        Those that are streamed.
    streams : Mapping[str, StreamWords]
    width : int
        Values per event in the model.
    """

    known: tuple[str, ...]
    entities: tuple[str, ...]
    streams: Mapping[str, StreamWords]
    width: int

    @classmethod
    def of(
        cls, about: FittedOn, experiment: Experiment, entities: Sequence[str] = ()
    ) -> Vocabulary:
        """Take the names from a fit, and from its experiment what a change is.

        Parameters
        ----------
        about : FittedOn
        experiment : Experiment
        entities : sequence of str
            Those to stream; default: all.

        Raises
        ------
        ValueError
            If an entity is not one of the fit.
        """
        for name in entities:
            require_name(name, about.entities, "entity")
        nothing = EventLog({name: pa.table({}) for name in about.streams})
        changes = declared_changes(experiment, nothing)
        ahead = _scheduled(experiment, nothing)
        streams = {}
        for code, name in enumerate(about.streams):
            columns = tuple(c for owner, c in about.channels if owner == name)
            streams[name] = StreamWords(
                name=name,
                code=code,
                columns=columns,
                change=changes.get(name) if CHANGE in columns else None,
                is_scheduled=name in ahead,
            )
        chosen = tuple(sorted(set(entities))) or about.entities
        return cls(about.entities, chosen, streams, about.width)

    def require_entity(self, name: str) -> None:
        """Refuse an entity that no forecast of the model can see."""
        if name != MARKET_WIDE:
            require_name(name, self.known, "entity")


def require_name(name: str, names: Sequence[str], what: str) -> None:
    """Refuse a name that the model was not fitted with.

    Raises
    ------
    ValueError
    """
    if name not in names:
        shown = ", ".join(names[:_SHOWN]) + (" ..." if len(names) > _SHOWN else "")
        raise ValueError(
            f"{what} must be one of {shown}; got {name!r}. "
            f"{did_you_mean(name, names)}Correct it, or fit a model with it."
        )


_SHOWN = 8


def _scheduled(experiment: Experiment, log: EventLog) -> frozenset[str]:
    """Return the streams that may be ahead of their events.

    A log from Python and a store do not say here which of theirs are: all may.
    """
    named = {name: False for name in log.streams if experiment.sources}
    for source in experiment.sources:
        free = isinstance(source, StoreSource) or getattr(source, "scheduled", False)
        named.update(dict.fromkeys(source.streams(log), True) if free else {})
    return frozenset(name for name in log.streams if named.get(name, True))
