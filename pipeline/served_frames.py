"""Information sets and forecasts as plain tables, which a model server exchanges."""

from __future__ import annotations

import numpy as np
import pandas as pd

from infoset.data.instants import instants, nanoseconds
from infoset.data.sequences import Samples
from infoset.models.attention_forecaster import AttentionForecaster
from infoset.models.event_window import StreamEvent, stream_events

from .walk_forward import quantile_column


def served_input(samples: Samples) -> pd.DataFrame:
    """Return one row per event of each information set.

    Columns: point (which forecast), entity, forecast_time, stream, own (False for
    market-wide events), event_time, available_at (ISO 8601 text, UTC), revision,
    value_0 ... (the numeric values of the stream, in alphabetical declaration order).
    An empty information set is one row with an empty stream.
    """
    rows: list[dict[str, object]] = []
    for point in range(len(samples)):
        entity = str(samples.points["entity"].iloc[point])
        about = {
            "point": point,
            "entity": entity,
            "forecast_time": _text(samples.forecast_time[point : point + 1]),
        }
        line = samples.timelines[entity]
        start, stop = int(samples.start[point]), int(samples.stop[point])
        streams = samples.arrays.streams
        events = [_event_row(e, streams) for e in stream_events(line, start, stop)]
        nothing = {"stream": "", "own": False, "event_time": "", "available_at": ""}
        nothing["revision"] = 0
        rows += [about | event for event in events or [nothing]]
    frame = pd.DataFrame(rows)
    width = samples.arrays.values.shape[1]
    names = [f"value_{place}" for place in range(width)]
    return frame.reindex(columns=[*_KEYS, *names]).astype(dict.fromkeys(names, "float"))


_KEYS = (
    "point",
    "entity",
    "forecast_time",
    "stream",
    "own",
    "event_time",
    "available_at",
    "revision",
)


def served_output(forecaster: AttentionForecaster, given: pd.DataFrame) -> pd.DataFrame:
    """Return one row per point: point and the quantiles in the target's unit.

    Parameters
    ----------
    forecaster : AttentionForecaster
        Fitted.
    given : DataFrame
        As `served_input` describes it; the events in order of availability.
    """
    rows = []
    for point, events in given.groupby("point", sort=True):
        first = events.iloc[0]
        stream = forecaster.stream(str(first["entity"]))
        for event in _stream_events(forecaster, events):
            stream.update(event)
        at = nanoseconds(pd.to_datetime(pd.Series([first["forecast_time"]])))
        forecasts = stream.forecast(int(at[0]))
        rows.append([point, *forecasts.quantiles[0].tolist()])
    names = [quantile_column(level) for level in forecaster.levels]
    return pd.DataFrame(rows, columns=["point", *names])


def _event_row(event: StreamEvent, streams: tuple[str, ...]) -> dict[str, object]:
    values = {f"value_{place}": v for place, v in enumerate(event.values.tolist())}
    return {
        "stream": streams[event.stream],
        "own": event.own,
        "event_time": _text(np.array([event.event_time])),
        "available_at": _text(np.array([event.available_at])),
        "revision": event.revision,
    } | values


def _stream_events(
    forecaster: AttentionForecaster, events: pd.DataFrame
) -> list[StreamEvent]:
    about = forecaster.fitted_on()
    real = events[events["stream"] != ""]
    values = real.filter(regex=r"^value_\d+$").to_numpy(np.float64)
    event_time = nanoseconds(pd.to_datetime(real["event_time"]))
    available_at = nanoseconds(pd.to_datetime(real["available_at"]))
    return [
        StreamEvent(
            stream=about.streams.index(str(stream)),
            own=bool(own),
            event_time=int(event_time[row]),
            available_at=int(available_at[row]),
            revision=int(revision),
            values=values[row],
        )
        for row, (stream, own, revision) in enumerate(
            zip(real["stream"], real["own"], real["revision"], strict=True)
        )
    ]


def _text(nanos: np.ndarray) -> str:
    return str(instants(nanos)[0].isoformat()).replace("+00:00", "Z")
