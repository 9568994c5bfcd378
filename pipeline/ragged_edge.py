"""The ragged edge: how far each stream reached at an instant, and how late it was."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import pandas as pd

from infoset.data.revision_features import revision_features

from .asof_request import AsOfRequest

COLUMNS = (
    "entity",
    "stream",
    "newest_period",
    "available_at",
    "age_days",
    "revisions",
    "usual_interval_days",
    "staleness",
    "ends_earlier",
)
_DAY = pd.Timedelta("1D")
NOTHING, ON_TIME, NO_INTERVAL = "nothing known", "on time", "no interval yet"
FURTHEST, AHEAD = "reaches furthest", "scheduled"


def ragged_edge(
    config: str,
    *,
    at: str,
    entity: str | None = None,
    stream: str | None = None,
    overrides: Sequence[str] = (),
) -> pd.DataFrame:
    """Return how far each stream reached at an instant, as a table for people.

    Parameters
    ----------
    config : str
    at : str
        ISO 8601 with a zone; a bare date means the end of that UTC day.
    entity, stream : str, optional
        Restrict the table.

    Returns
    -------
    DataFrame
        Columns `COLUMNS`: the newest period known, since when and for how long (days),
        how often it has been revised, the stream's usual interval (median of its
        newest 12 gaps between publications), by how many of them it is late, and by
        how many days its newest period ends before that of the stream that reaches
        furthest. Streams of scheduled events reach into the future and are not
        compared. `attrs["at"]` names the instant.

    Raises
    ------
    ValueError
        See `AsOfRequest.read`.
    """
    request = AsOfRequest.read(
        config, at=at, entity=entity, stream=stream, overrides=overrides
    )
    owners = list(dict.fromkeys(owner for _, owner in request.subjects))
    points = pd.DataFrame({"entity": owners, "forecast_time": request.time})
    features = revision_features(
        request.log, points, boundary=request.experiment.boundary
    )
    shown = features.set_index(["stream", "entity"]).loc[list(request.subjects)]
    ahead = np.array([n in request.log.scheduled for n, _ in request.subjects], bool)
    period = shown["event_time"]
    shown["behind"] = period.mask(ahead).max() - period
    records = shown.reset_index().to_dict("records")
    rows = [
        _row(record, is_scheduled=bool(scheduled))
        for record, scheduled in zip(records, ahead, strict=True)
    ]
    answer = pd.DataFrame(rows, columns=list(COLUMNS))
    answer.attrs["at"] = request.title
    return answer


def _row(record: Mapping[Hashable, object], *, is_scheduled: bool) -> dict[str, object]:
    period, known = record["event_time"], record["available_at"]
    whose = {"entity": record["entity"], "stream": record["stream"]}
    if not isinstance(period, pd.Timestamp) or not isinstance(known, pd.Timestamp):
        return dict.fromkeys(COLUMNS, "") | whose | {"newest_period": NOTHING}
    return {
        **whose,
        "newest_period": _instant(period),
        "available_at": _instant(known),
        "age_days": _days(record["age"]),
        "revisions": record["num_revisions"],
        "usual_interval_days": _days(record["usual_interval"]),
        "staleness": lateness(float(str(record["staleness"]))),
        "ends_earlier": AHEAD if is_scheduled else _gap(record["behind"]),
    }


def lateness(staleness: float) -> str:
    """Say by how many usual intervals a stream is late, such as ``2.3 intervals late``."""
    if np.isnan(staleness):
        return NO_INTERVAL
    late = round(staleness - 1, 1)
    return ON_TIME if late <= 0 else f"{late:,.1f} intervals late"


def _gap(behind: object) -> str:
    return FURTHEST if behind == pd.Timedelta(0) else f"{_days(behind)} d"


def _days(duration: object) -> str:
    if not isinstance(duration, pd.Timedelta):
        return ""  # not a time: nothing was known, or no gap has been seen
    return f"{duration / _DAY:,.1f}"


def _instant(time: pd.Timestamp) -> str:
    return time.isoformat().replace("+00:00", "Z")
