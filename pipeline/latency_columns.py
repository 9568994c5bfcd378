"""The columns of `latency.parquet`: what is written and what the report reads."""

TIMES = "times_us"  # of single forecasts, a list in each row
COLUMNS = (
    "forecaster",
    "attention",
    "workload",
    "history_length",
    "num_forecasts",
    "p50_us",
    "p95_us",
    "p99_us",
    "state_bytes",
    TIMES,
    "undefined",
)
SUMMARY = tuple(name for name in COLUMNS if name != TIMES)
