"""A small run's folder, written by hand: for tests of what reads one."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

LEVELS = (0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95)
NORMAL = (-1.645, -1.282, -0.674, 0.0, 0.674, 1.282, 1.645)
ENTITIES = ("DGS10", "DGS20")
LOSSES = {"linear": 0.2466, "softmax": 0.2481, "ewma": 0.2493, "historical": 0.2601}
KINDS = {
    "historical": {"kind": "historical"},
    "ewma": {"kind": "ewma"},
    "linear": {"kind": "linear", "feature_map": "elu1"},
    "softmax": {"kind": "softmax"},
}


def config(
    *,
    entities: tuple[str, ...] = ENTITIES,
    name: str = "demo",
    baseline: str | None = "ewma",
) -> dict[str, Any]:
    source = {
        "path": "yields.csv",
        "sample": None,
        "stream": "yield/1d",
        "entity": {"column": "series"},
        "event_time": {
            "column": "date",
            "stamp": "date",
            "at": "15:30",
            "zone": "America/New_York",
        },
        "available_at": {
            "sessions": 1,
            "calendar": "us_federal_board",
            "at": "16:15",
            "zone": "America/New_York",
        },
        "assumptions": ["Known when the next H.15 appears, and never before."],
    }
    return {
        "name": name,
        "description": "Next-session change of Treasury yields.",
        "sources": [source],
        "boundary": "inclusive",
        "history": {"last": 256, "since": None, "calendar": None},
        "history_lengths": [64, 1024],
        "targets": [
            {
                "entities": list(entities),
                "stream": "yield/1d",
                "horizon": 1,
                "unit": "bp",
            }
        ],
        "baseline": baseline,
        "forecasters": KINDS,
        "seeds": [0, 1],
    }


def forecasts(
    *, entities: tuple[str, ...] = ENTITIES, num_times: int = 160
) -> pd.DataFrame:
    generator = np.random.default_rng(7)
    times = pd.bdate_range("2012-01-03 22:00", periods=num_times, tz="UTC")
    spread = 5 + 2 * np.sin(np.arange(num_times) / 20)
    frames = []
    for entity in entities:
        target = spread * generator.standard_t(6, num_times) / 1.2
        for forecaster, width in (
            ("historical", np.full(num_times, 6.4)),
            ("ewma", spread),
            ("linear", spread * 1.02),
            ("softmax", spread * 0.97),
        ):
            seeds = (0, 1) if forecaster in ("linear", "softmax") else (0,)
            for seed in seeds:
                centre = generator.normal(0, 0.4, num_times)
                frame = pd.DataFrame(
                    {
                        "forecaster": forecaster,
                        "history": "last 256",
                        "fold": np.arange(num_times) // 80,
                        "seed": seed,
                        "entity": entity,
                        "forecast_time": times,
                        "target_start": times,
                        "target_end": times + pd.Timedelta(days=1),
                        "fingerprint": [f"{place:032x}" for place in range(num_times)],
                        "num_events": 256,
                        "mean": centre,
                    }
                )
                for level, point in zip(LEVELS, NORMAL, strict=True):
                    frame[f"q{level:.2f}".replace("0.", "")] = centre + point * width
                frame["target"] = target
                frame["target_scale"] = 5.0
                frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def scores(*, entities: tuple[str, ...] = ENTITIES) -> dict[str, Any]:
    return {
        "convention": "Scaled: divided by the spread of the training targets.",
        "by_forecaster": [
            {
                "forecaster": name,
                "scaled_pinball": loss,
                "scaled_pinball_low": loss - 0.008,
                "scaled_pinball_high": loss + 0.009,
                "crps": 2 * loss + 0.02,
                "mae": 2.7 * loss,
                "coverage_90": 0.885 + loss / 10,
                "num_forecasts": 640 if name in ("linear", "softmax") else 320,
                "num_undefined": 0,
                "rank_ic": None,
                "rank_ic_reason": "fewer than 3 entities at a forecast time",
                "undefined": None,
            }
            for name, loss in LOSSES.items()
        ],
        "by_entity": [
            {
                "forecaster": name,
                "entity": entity,
                "unit": "bp",
                "pinball": 4 * loss + place / 10,
                "crps": 8 * loss,
                "mae": 11 * loss,
                "coverage_90": 0.9,
                "num_forecasts": 160,
                "undefined": None,
            }
            for name, loss in LOSSES.items()
            for place, entity in enumerate(entities)
        ],
        "by_history": [
            {
                "forecaster": name,
                "history": history,
                "length": length,
                "scaled_pinball": LOSSES[name] + change,
                "low": LOSSES[name] + change - 0.008,
                "high": LOSSES[name] + change + 0.009,
            }
            for name in LOSSES
            for history, length, change in (
                ("last 64", 64, 0.0012),
                ("last 256", 256, 0.0),
                ("last 1024", 1024, -0.0004),
            )
            if name in ("linear", "softmax") or length == 256
        ],
        "by_seed": [
            {"forecaster": name, "seed": seed, "scaled_pinball": LOSSES[name] + change}
            for name in ("linear", "softmax")
            for seed, change in ((0, -0.0003), (1, 0.0003))
        ],
    }


def pair(
    forecaster: str, other: str, low: float, high: float, p_value: float
) -> dict[str, Any]:
    return {
        "forecaster": forecaster,
        "other": other,
        "mean_difference": LOSSES[forecaster] - LOSSES[other],
        "low": low,
        "high": high,
        "statistic": -2.5,
        "p_value": p_value,
        "kernel": "rectangular",
        "lag": 0,
        "num_times": 160,
        "num_undefined": 0,
        "undefined": None,
    }


def comparison(*, baseline: str | None = "ewma") -> dict[str, Any]:
    return {
        "baseline": baseline,
        "loss": "scaled_pinball",
        "horizon": 1,
        "pairs": [
            pair("ewma", "historical", -0.016, -0.006, 0.0002),
            pair("ewma", "linear", 0.0008, 0.0046, 0.004),
            pair("ewma", "softmax", -0.0011, 0.0035, 0.31),
            pair("historical", "linear", 0.008, 0.019, 0.0001),
            pair("historical", "softmax", 0.007, 0.017, 0.0001),
            pair("linear", "softmax", -0.0034, 0.0004, 0.12),
        ],
    }


def latency() -> pd.DataFrame:
    """Return what a run of an earlier version measured: one forecast at a time."""
    generator = np.random.default_rng(11)
    rows = []
    for length in (64, 256, 1024, 4096):
        for name, streaming, fresh in (
            ("linear", 180.0, 300 + 1.1 * length),
            ("softmax", 150 + 0.5 * length, 280 + 0.9 * length + length**2 / 4000),
        ):
            for workload, median in (("fresh", fresh), ("streaming", streaming)):
                rows.append(
                    {
                        "forecaster": name,
                        "attention": name,
                        "workload": workload,
                        "history_length": length,
                        "num_forecasts": 200,
                        "p50_us": float(median),
                        "p95_us": 1.3 * median,
                        "p99_us": 1.9 * median,
                        "state_bytes": 9000 if name == "linear" else 256 * length,
                        "times_us": median * generator.normal(1, 0.02, 200),
                    }
                )
    rows += [
        {
            "forecaster": name,
            "workload": "fresh",
            "history_length": 256,
            "num_forecasts": 200,
            "p50_us": median,
            "p95_us": 1.2 * median,
            "p99_us": 1.4 * median,
            "times_us": np.full(200, median),
        }
        for name, median in (("ewma", 61.0), ("historical", 60.0))
    ]
    return pd.DataFrame(rows)


def latency_suite() -> pd.DataFrame:
    """Return the same with what the suite adds: loops, conditions, other factors."""
    table = latency().assign(
        loop="closed", time="service", threads=1, entities=1, instances=1
    )
    table["backend"] = [
        "torch" if known else None for known in table["attention"].notna()
    ]
    base = table[(table["history_length"] == 256) & table["attention"].notna()]
    parts = [table]
    for time, factor in (("service", 1.0), ("response", 3.0)):
        opened = base.assign(loop="poisson", time=time, rate_hz=240.0)
        opened["p99_us"] *= factor
        parts.append(opened)
    parts.append(
        base.assign(
            loop="poisson",
            time="response",
            limit_us=10_000.0,
            rate_hz=410.0,
            throughput_hz=410.0,
            p99_us=9_500.0,
        )
    )
    parts.append(base.assign(instances=2, throughput_hz=1_234.0))
    whole = pd.concat(parts, ignore_index=True)
    whole["p90_us"], whole["max_us"] = 1.2 * whole["p50_us"], 4 * whole["p50_us"]
    whole["p50_low_us"], whole["p50_high_us"] = 0.9 * whole["p50_us"], whole["p50_us"]
    whole["p99_9_undefined"] = "p99.9 needs 10,000 forecasts; there are 200"
    whole["reference_error"] = 1.2e-7
    whole["clock_step_ns"], whole["cores"] = 50.0, "1"
    whole["machine"], whole["versions"] = "Some CPU, 2 cores, Linux", "torch 2.13.0"
    whole["contention"], whole["waited_percent"] = None, 0.1
    return whole


def training() -> list[dict[str, Any]]:
    """Say that linear learned in one fold of two, and softmax in both."""
    return [
        {
            "forecaster": name,
            "history": history,
            "fold": fold,
            "seed": seed,
            "kept_step": 0 if (name, fold) == ("linear", 0) else 75,
            "last_step": 150,
            "start_loss": 0.25,
            "kept_loss": 0.25 if (name, fold) == ("linear", 0) else 0.24,
        }
        for name in ("linear", "softmax")
        for history in ("last 64", "last 256")
        for fold in (0, 1)
        for seed in (0, 1)
    ]


def certificate(*, num_failures: int = 0) -> dict[str, Any]:
    return {
        "passed": num_failures == 0,
        "checks": [
            {
                "level": "data",
                "name": "inputs without the future",
                "num_points": 20,
                "num_failures": num_failures,
                "largest_change": 0.0,
                "allowed_change": 0.0,
                "detail": "Everything unavailable was deleted.",
            },
            {
                "level": "model",
                "name": "forecasts of linear without the future",
                "num_points": 20,
                "num_failures": 0,
                "largest_change": 2.4e-7,
                "allowed_change": 1e-6,
                "detail": "The same forecasts from the cut log.",
            },
        ],
    }


def record() -> dict[str, Any]:
    return {
        "folds": [
            {
                "fold": fold,
                "cut": f"201{2 + fold}-01-01T00:00:00+00:00",
                "train_first": "2000-01-03T22:00:00+00:00",
                "train_last": f"20{9 + fold:02d}-12-31T22:00:00+00:00",
                "train_rows": 5000 + fold * 500,
                "validation_first": f"201{fold}-01-04T22:00:00+00:00",
                "validation_last": f"201{1 + fold}-12-30T22:00:00+00:00",
                "validation_rows": 1000,
                "test_first": f"201{2 + fold}-01-03T22:00:00+00:00",
                "test_last": f"201{2 + fold}-12-31T22:00:00+00:00",
                "test_rows": 500,
                "purged_rows": 6,
                "embargo_rows": 0,
            }
            for fold in range(2)
        ],
        "excluded": [
            {"what": "event rows", "reason": "exact duplicates", "count": 0},
            {"what": "forecast times of DGS10", "reason": "no target", "count": 12},
        ],
        "training": training(),
        "tasks": {"total": 20, "reused": 3},
        "given": [],
        "versions": {"torch": "2.13.0", "numpy": "2.3.5"},
        "config_digest": "0123456789abcdef",
        "test_fingerprint": "f" * 32,
        "command": "infoset run demo",
        "started": "2026-01-02T03:04:05+00:00",
        "seconds": 81.5,
        "machine": "Some CPU, 2 cores, Linux",
    }


def write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


def make_run(folder: Path) -> Path:
    """Write a complete run."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(config()), encoding="utf-8")
    forecasts().to_parquet(folder / "forecasts.parquet", index=False)
    write_json(folder / "scores.json", scores())
    write_json(folder / "comparison.json", comparison())
    latency().to_parquet(folder / "latency.parquet", index=False)
    write_json(folder / "certificate.json", certificate())
    write_json(folder / "run.json", record())
    return folder
