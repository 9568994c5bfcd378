"""Forecasts from before the end of an encoder's training: marked, counted, told."""

from __future__ import annotations

import numpy as np
import pandas as pd

from infoset.data.encoded_streams import Encoding, encodings
from infoset.data.instants import nanoseconds

from .config import Experiment
from .preparation import Prepared

LOOK_AHEAD = "look_ahead"


def used_encodings(prepared: Prepared) -> list[Encoding]:
    """Return the encoders whose numbers are in the log, each once, by name."""
    made = {made.digest: made for made in encodings(prepared.log).values()}
    return sorted(made.values(), key=lambda encoding: (encoding.name, encoding.digest))


def marked(
    experiment: Experiment, prepared: Prepared, forecasts: pd.DataFrame
) -> pd.DataFrame:
    """Return the forecasts with the column `look_ahead`, where an encoder is used.

    It is true where training of an encoder went on after the forecast time.
    """
    used = used_encodings(prepared)
    if not used:
        return forecasts
    times = nanoseconds(forecasts["forecast_time"])
    early = [made.looks_ahead(times, boundary=experiment.boundary) for made in used]
    return forecasts.assign(**{LOOK_AHEAD: np.logical_or.reduce(early)})


def early_test_forecasts(
    experiment: Experiment, prepared: Prepared, encoding: Encoding
) -> tuple[int, int]:
    """Return how many test forecasts training reaches beyond, and how many there are."""
    rows = np.unique(np.concatenate([fold.test for fold in prepared.folds]))
    times = nanoseconds(prepared.points["forecast_time"].iloc[rows])
    early = encoding.looks_ahead(times, boundary=experiment.boundary)
    return int(early.sum()), len(rows)


def encoder_records(
    experiment: Experiment, prepared: Prepared
) -> list[dict[str, object]]:
    """Return what `run.json` says of each encoder."""
    made = encodings(prepared.log)
    records = []
    for encoding in used_encodings(prepared):
        early, total = early_test_forecasts(experiment, prepared, encoding)
        streams = [s for s, of in made.items() if of.digest == encoding.digest]
        records.append(
            encoding.to_json()
            | {"streams": streams, "num_look_ahead": early, "num_forecasts": total}
        )
    return records
