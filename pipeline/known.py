"""What was known at an instant, as a table for people."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from infoset.data.asof import vintage
from infoset.data.changes import CHANGE, change_between
from infoset.data.instants import nanoseconds

from .asof_request import AsOfRequest
from .preparation import declared_changes

COLUMNS = (
    "entity",
    "stream",
    "event_time",
    "available_at",
    "age_days",
    "revision",
    "values",
    "change",
)
NOTHING = "nothing known"
_LONGEST = 80  # of a text; a table is no place to read a statement in


def known_at(
    config: str,
    *,
    at: str,
    entity: str | None = None,
    stream: str | None = None,
    periods: int = 1,
    overrides: Sequence[str] = (),
) -> pd.DataFrame:
    """Return the newest periods of each stream as they read at an instant.

    A change is taken inside the vintage: the period's value minus the value of the
    period before, both as known at the instant.

    Parameters
    ----------
    config : str
    at : str
        ISO 8601 with a zone; a bare date means the end of that UTC day.
    entity, stream : str, optional
        Restrict the table.
    periods : int
        Rows per entity and stream, at most.

    Returns
    -------
    DataFrame
        Columns `COLUMNS`. `attrs["at"]` names the instant.

    Raises
    ------
    ValueError
        See `AsOfRequest.read`.
    """
    request = AsOfRequest.read(
        config, at=at, entity=entity, stream=stream, overrides=overrides
    )
    rows: list[dict[str, object]] = []
    for name, owner in request.subjects:
        rows += _rows(request, stream=name, owner=owner, periods=periods)
    answer = pd.DataFrame(rows, columns=list(COLUMNS))
    answer.attrs["at"] = request.title
    return answer


def _rows(
    request: AsOfRequest, *, stream: str, owner: str, periods: int
) -> list[dict[str, object]]:
    experiment, log, time = request.experiment, request.log, request.time
    read = vintage(
        log,
        stream,
        entity=owner,
        forecast_time=time,
        boundary=experiment.boundary,
    )
    if read.empty:
        blank: dict[str, object] = dict.fromkeys(COLUMNS, "")
        return [blank | {"entity": owner, "stream": stream, "values": NOTHING}]
    rule = declared_changes(experiment, log).get(stream)
    if rule is not None:
        level = read[rule.column].to_numpy(np.float64)
        before = np.concatenate([[np.nan], level[:-1]])
        known = rule.is_known(
            nanoseconds(read["event_time"]), nanoseconds(read["available_at"])
        )
        moved = change_between(before, level, rule.kind)
        read[CHANGE] = np.where(known, moved, np.nan)
    values = [n for n in log.values_of(stream) if not n.startswith("text_")]
    return [
        {
            "entity": owner,
            "stream": stream,
            "event_time": record["event_time"].isoformat(),
            "available_at": record["available_at"].isoformat(),
            "age_days": f"{(time - record['available_at']) / pd.Timedelta('1D'):.1f}",
            "revision": record["revision"],
            "values": ", ".join(f"{n} {_shown(record[n])}" for n in values),
            "change": _shown(record[CHANGE]) if CHANGE in record else "",
        }
        for record in read.tail(periods).to_dict("records")
    ]


def _shown(value: object) -> str:
    if isinstance(value, float):
        return "missing" if np.isnan(value) else f"{value:.10g}"
    text = "missing" if value is None else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
