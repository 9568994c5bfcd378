"""The streams that settings name must be there."""

from __future__ import annotations

from infoset.data.events import EventLog
from infoset.data.forecast_times import AfterEvents
from infoset.data.sources.nearest import did_you_mean

from .config import Experiment


def require_named_streams(experiment: Experiment, log: EventLog) -> None:
    """Refuse a stream of the targets or forecast times that the log does not hold.

    Raises
    ------
    ValueError
        It names the setting.
    """
    named = {
        f"targets.{place}.stream": target.stream
        for place, target in enumerate(experiment.targets)
    }
    if isinstance(experiment.forecast_times, AfterEvents):
        named["forecast_times.stream"] = experiment.forecast_times.stream
    for setting, stream in named.items():
        if stream not in log.streams:
            raise ValueError(
                f"{setting} must be one of {', '.join(log.streams) or '(none)'}; got "
                f"{stream!r}. {did_you_mean(stream, log.streams)}Correct it, or the "
                "`stream` of the sources."
            )
