"""A small experiment on two prices and a stream of news, for tests of whole runs."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

FIRST_TEST, LAST_TEST = "2024-03-01", "2024-03-20"


def price_experiment(folder: Path, **changes: object) -> Path:
    """Write prices, news and a configuration; return the configuration's path."""
    days = pd.date_range("2024-01-01", periods=90, tz="UTC")
    generator = np.random.default_rng(3)
    rows = ["id,day,close"]
    for name in ("A", "B"):
        closes = 100 + generator.normal(size=len(days)).cumsum()
        rows += [
            f"{name},{day:%Y-%m-%d},{close:.4f}"
            for day, close in zip(days, closes, strict=True)
        ]
    (folder / "prices.csv").write_text("\n".join(rows) + "\n")
    news = [f"{day:%Y-%m-%dT%H:%MZ},item {k}" for k, day in enumerate(days[::3])]
    (folder / "news.csv").write_text("\n".join(["at,words", *news]) + "\n")
    path = folder / "prices.yaml"
    own = {
        "runs": str(folder / "runs"),
        "tracking_uri": f"sqlite:///{folder / 'mlflow.db'}",
    }
    path.write_text(yaml.safe_dump(_configuration() | own | changes))
    return path


def news_source(**text: object) -> dict[str, Any]:
    """Declare the news, with their text as given."""
    return {
        "path": "news.csv",
        "stream": "news",
        "entity": "*",
        "event_time": {"column": "at", "stamp": "instant"},
        "available_at": {"column": "at"},
        "text": {"column": "words"} | text,
    }


def price_source() -> dict[str, Any]:
    """Declare a close per day, known at noon of the next."""
    return {
        "path": "prices.csv",
        "stream": "close/1d",
        "entity": {"column": "id"},
        "event_time": {"column": "day", "stamp": "date", "at": "00:00", "zone": "UTC"},
        "available_at": {"days": 1, "at": "12:00", "zone": "UTC"},
        "values": {"value": "close"},
    }


def _configuration() -> dict[str, Any]:
    return {
        "name": "prices",
        "sources": [price_source()],
        "forecast_times": {"kind": "interval", "interval": "1D"},
        "history": {"last": 8},
        "targets": [{"entities": ["A", "B"], "stream": "close/1d"}],
        "folds": {
            "first_test": FIRST_TEST,
            "last_test": LAST_TEST,
            "test_size": "10D",
            "validation_size": "10D",
        },
        "baseline": "ewma",
        "forecasters": {"ewma": {"kind": "ewma"}, "ridge": {"kind": "ridge"}},
        "certificate": {"num_points": 2},
    }
