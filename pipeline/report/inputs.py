"""The files of a run, read for its report: what is optional and absent is empty."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from infoset.pipeline.latency.columns import SUMMARY, TIMES, plain_rows, usual_backend
from infoset.pipeline.latency.crossover import Crossover, crossovers

_REQUIRED = ("config.yaml", "forecasts.parquet", "scores.json")
_FORECAST_COLUMNS = (
    "forecaster",
    "history",
    "fold",
    "seed",
    "entity",
    "forecast_time",
    "target",
)
_BY_FORECASTER = (
    "forecaster",
    "scaled_pinball",
    "scaled_pinball_low",
    "scaled_pinball_high",
    "crps",
    "mae",
    "coverage_90",
    "num_forecasts",
    "num_undefined",
    "rank_ic",
    "rank_ic_reason",
    "undefined",
)
_BY_ENTITY = (
    "forecaster",
    "entity",
    "unit",
    "pinball",
    "crps",
    "mae",
    "coverage_90",
    "num_forecasts",
    "undefined",
)
_BY_HISTORY = ("forecaster", "history", "length", "scaled_pinball", "low", "high")
_BY_SEED = ("forecaster", "seed", "scaled_pinball")
_PAIRS = (
    "forecaster",
    "other",
    "mean_difference",
    "low",
    "high",
    "statistic",
    "p_value",
    "kernel",
    "lag",
    "num_times",
    "undefined",
)
_CHECKS = (
    "level",
    "name",
    "num_points",
    "num_failures",
    "largest_change",
    "allowed_change",
    "detail",
)
# Columns of text; all others in these tables are numbers.
_TEXTS = frozenset(
    {
        "attention",
        "backend",
        "contention",
        "cores",
        "detail",
        "entity",
        "forecaster",
        "form",
        "history",
        "kernel",
        "level",
        "loop",
        "machine",
        "name",
        "other",
        "p99_9_undefined",
        "rank_ic_reason",
        "time",
        "undefined",
        "unit",
        "versions",
        "workload",
    }
)
# What earlier versions measured without saying so.
_ONE_AT_A_TIME = {
    "loop": "closed",
    "time": "service",
    "threads": 1,
    "entities": 1,
    "instances": 1,
    "backend": "torch",
}


@dataclass(frozen=True, eq=False)
class RunContents:
    """What a run left behind.

    Attributes
    ----------
    config : Mapping
        The resolved configuration.
    forecasts : DataFrame
        At the main history.
    convention : str
        How scores are defined.
    by_forecaster, by_entity, by_history, by_seed : DataFrame
        Of ``scores.json``; NaN where undefined.
    comparison : Mapping
        ``comparison.json`` without its pairs; empty if there is none.
    pairs : DataFrame
    latency : DataFrame
    certificate : Mapping or None
        Without its checks.
    checks : DataFrame
    record : Mapping
        ``run.json``; empty if there is none.
    """

    config: Mapping[str, Any]
    forecasts: pd.DataFrame
    convention: str
    by_forecaster: pd.DataFrame
    by_entity: pd.DataFrame
    by_history: pd.DataFrame
    by_seed: pd.DataFrame
    comparison: Mapping[str, Any]
    pairs: pd.DataFrame
    latency: pd.DataFrame
    certificate: Mapping[str, Any] | None
    checks: pd.DataFrame
    record: Mapping[str, Any]

    @classmethod
    def read(cls, folder: Path) -> RunContents:
        """Read a run's folder.

        Raises
        ------
        ValueError
            If a required file is missing, or a file cannot be understood.
        """
        absent = [name for name in _REQUIRED if not (folder / name).is_file()]
        if absent:
            raise ValueError(
                f"a run must hold {', '.join(_REQUIRED)}; got no {', '.join(absent)} "
                f"in {folder}. Run the experiment first."
            )
        config = _yaml(folder / "config.yaml")
        scores = _json(folder / "scores.json")
        comparison = _json(folder / "comparison.json")
        certificate = _json(folder / "certificate.json")
        return cls(
            config=config,
            forecasts=_forecasts(folder / "forecasts.parquet", config),
            convention=str(scores.get("convention", "")),
            by_forecaster=_ranked(scores),
            by_entity=_table(scores.get("by_entity"), _BY_ENTITY),
            by_history=_table(scores.get("by_history"), _BY_HISTORY),
            by_seed=_table(scores.get("by_seed"), _BY_SEED),
            comparison=comparison,
            pairs=_table(comparison.get("pairs"), _PAIRS),
            latency=_latency(folder / "latency.parquet"),
            certificate=certificate or None,
            checks=_table(certificate.get("checks"), _CHECKS),
            record=_json(folder / "run.json"),
        )

    @property
    def names(self) -> list[str]:
        """Forecasters, lowest loss first."""
        return list(self.by_forecaster["forecaster"])

    @cached_property
    def kinds(self) -> dict[str, str]:
        """Kind of each forecaster; ``own`` for one that was given from Python."""
        declared = self.config.get("forecasters") or {}
        return {
            name: str((declared.get(name) or {}).get("kind", "own"))
            for name in self.names
        }

    @cached_property
    def latency_alone(self) -> pd.DataFrame:
        """Latencies of one forecast at a time: a row per forecaster, workload, length."""
        return usual_backend(plain_rows(self.latency))

    @cached_property
    def crossovers(self) -> list[Crossover]:
        """From which length on linear attention is cheaper, by workload and backend."""
        return crossovers(self.latency)

    @property
    def baseline(self) -> str | None:
        """The forecaster that others have to beat."""
        name = self.comparison.get("baseline") or self.config.get("baseline")
        return name if name in self.names else None

    @property
    def history(self) -> str:
        """The main history, as `forecasts.parquet` writes it."""
        return history_text(self.config)

    def best(self, *kinds: str) -> str | None:
        """Return the forecaster of these kinds with the lowest loss."""
        return next((n for n in self.names if self.kinds[n] in kinds), None)

    def loss_of(self, name: str) -> float:
        """Return the mean loss that forecasters are compared by; NaN without a score."""
        losses = dict(
            zip(self.names, self.by_forecaster["scaled_pinball"], strict=True)
        )
        return float(losses.get(name, np.nan))


def history_text(config: Mapping[str, Any]) -> str:
    """Write the main history of a configuration: ``last 256``, ``all``, ``since year``."""
    history = config.get("history") or {}
    if isinstance(history, str):
        return history
    if history.get("last") is not None:
        return f"last {history['last']}"
    return f"since {history['since']}" if history.get("since") else "all"


def _yaml(path: Path) -> Mapping[str, Any]:
    try:
        return _mapping(yaml.safe_load(path.read_text(encoding="utf-8")), path)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} must be valid YAML; got {error}.") from error


def _json(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        return {}
    try:
        return _mapping(json.loads(path.read_text(encoding="utf-8")), path)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path} must be valid JSON; got {error}. Run the experiment again."
        ) from error


def _mapping(content: object, path: Path) -> Mapping[str, Any]:
    if not isinstance(content, Mapping):
        raise ValueError(  # noqa: TRY004 (a file is wrong, not an argument)
            f"{path} must hold keys and values; got {type(content).__name__}. "
            "Run the experiment again."
        )
    return content


def _table(records: object, columns: Sequence[str]) -> pd.DataFrame:
    """Return records as a table that has all columns; null and infinite become NaN."""
    frame = pd.DataFrame(records if isinstance(records, list) else [])
    frame = frame.reindex(columns=list(columns))
    for column in columns:
        if column in _TEXTS:
            known = frame[column].notna()
            frame[column] = frame[column].astype(object).where(known, None)
        else:
            numbers = pd.to_numeric(frame[column], errors="coerce").astype("float64")
            frame[column] = numbers.replace([np.inf, -np.inf], np.nan)
    return frame


def _ranked(scores: Mapping[str, Any]) -> pd.DataFrame:
    table = _table(scores.get("by_forecaster"), _BY_FORECASTER)
    return table.sort_values(
        ["scaled_pinball", "forecaster"], na_position="last", ignore_index=True
    )


def _latency(path: Path) -> pd.DataFrame:
    rows = _parquet(path).to_dict("records") if path.is_file() else []
    rows = [_ONE_AT_A_TIME | row for row in rows]
    taken = [() if row.get(TIMES) is None else tuple(row[TIMES]) for row in rows]
    return _table(rows, SUMMARY).assign(**{TIMES: pd.Series(taken, dtype=object)})


def _forecasts(path: Path, config: Mapping[str, Any]) -> pd.DataFrame:
    frame = _parquet(path)
    absent = [name for name in _FORECAST_COLUMNS if name not in frame.columns]
    if absent:
        raise ValueError(
            f"{path} must have the columns {', '.join(_FORECAST_COLUMNS)}; got none "
            f"named {', '.join(absent)}. Run the experiment again."
        )
    return frame[frame["history"] == history_text(config)].reset_index(drop=True)


def _parquet(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{path} must be a Parquet file; got {error}. Run the experiment again."
        ) from error
