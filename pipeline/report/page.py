"""The report of a run: one HTML file that opens anywhere and needs nothing else."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import jinja2
import pandas as pd

from .cells import comparison_cells
from .clocks import source_clocks, universe_words
from .costs import scored_cost
from .inputs import RunContents
from .kinds import kind_words
from .latency_cells import latency_cells
from .latency_section import latency_section
from .looks import Look, looks
from .matplotlib_folder import private_matplotlib_folder
from .numbers import (
    count,
    day,
    duration,
    finite,
    memory,
    p_value,
    percent,
    plain,
    signed_percent,
    significant,
    started,
)
from .records import excluded_rows, fold_rows, short_fold_note
from .tables import (
    comparison_frame,
    entities,
    entity_blocks,
    pair_rows,
    recent_forecasts,
    seed_ranges,
    shown_forecasters,
    undefined_notes,
)
from .training import by_fold, trainings
from .verdicts import limits, look_ahead, verdicts
from .words import listing, overlap_sentence

_NAME = "report.html"
_FILTERS = (
    count,
    day,
    duration,
    finite,
    memory,
    p_value,
    percent,
    plain,
    signed_percent,
    significant,
    started,
)
_RECORD = (
    "command",
    "given",
    "started",
    "seconds",
    "machine",
    "config_digest",
    "test_fingerprint",
)


def write_report(run_dir: Path) -> Path:
    """Write ``report.html`` into a run's folder.

    The page holds its style and figures, loads nothing, and needs no script. Equal
    files of the run give equal bytes.

    Parameters
    ----------
    run_dir : Path
        Folder with config.yaml, forecasts.parquet and scores.json, and as far as they
        were made comparison.json, latency.parquet, certificate.json and run.json.

    Returns
    -------
    Path
        The report.

    Raises
    ------
    ValueError
        If a required file is missing, a file cannot be understood, or the folder
        cannot be written.
    """
    page = _page(RunContents.read(run_dir))
    path = run_dir / _NAME
    draft = run_dir / f"{_NAME}.partial-{os.getpid()}"
    try:
        # A half of a surrogate pair, which JSON can hold, has no UTF-8 of its own.
        draft.write_bytes(page.encode("utf-8", errors="backslashreplace"))
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise ValueError(
            f"the run's folder must be writable; got {run_dir} ({error.strerror}). "
            "Choose another by `runs:`, or change its permissions."
        ) from error
    return path


def comparison_table(run_dir: Path) -> pd.DataFrame:
    """Return the table of the report: one row per forecaster, lowest loss first.

    Returns
    -------
    DataFrame
        See `report_tables.comparison_frame`.

    Raises
    ------
    ValueError
        If a required file is missing or a file cannot be understood.
    """
    return comparison_frame(RunContents.read(run_dir))


def comparison_text(run_dir: Path) -> pd.DataFrame:
    """Return the same table as texts, rounded as in the report, for a terminal.

    Returns
    -------
    DataFrame
        See `report_cells.comparison_cells`.

    Raises
    ------
    ValueError
        If a required file is missing or a file cannot be understood.
    """
    return comparison_cells(RunContents.read(run_dir))


def latency_text(run_dir: Path) -> tuple[pd.DataFrame, list[str]]:
    """Return latencies as texts and sentences, as in the report, for a terminal.

    Returns
    -------
    DataFrame, list of str
        See `latency_cells.latency_cells`.

    Raises
    ------
    ValueError
        If a required file is missing or a file cannot be understood.
    """
    return latency_cells(RunContents.read(run_dir))


def _page(contents: RunContents) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_template),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update({how.__name__: how for how in _FILTERS})
    chosen = looks(contents.names, contents.kinds, contents.baseline)
    return environment.get_template("page.html").render(
        looks=chosen,
        **_subject(contents),
        **_results(contents),
        **_figures(contents, chosen),
        **_provenance(contents),
    )


def _template(name: str) -> str:
    return (files("infoset.pipeline.report") / name).read_text(encoding="utf-8")


def _subject(contents: RunContents) -> dict[str, object]:
    """Return what the page says before any result."""
    times = contents.forecasts["forecast_time"]
    passed, certificate_text = look_ahead(contents)
    return {
        "name": str(contents.config.get("name", "")),
        "description": str(contents.config.get("description") or ""),
        "entities": listing(entities(contents)),
        "baseline": contents.baseline,
        "history": contents.history,
        "boundary": str(contents.config.get("boundary", "inclusive")),
        "seeds": [str(seed) for seed in contents.config.get("seeds") or ()],
        "num_folds": contents.forecasts["fold"].nunique(),
        "num_times": times.nunique(),
        "first_time": times.min(),
        "last_time": times.max(),
        "certificate_passed": passed,
        "certificate_text": certificate_text,
    }


def _results(contents: RunContents) -> dict[str, object]:
    comparison = comparison_frame(contents)
    horizon = contents.comparison.get("horizon")
    return {
        "verdicts": verdicts(contents),
        "comparison": comparison.to_dict("records"),
        "with_look_ahead": "num_look_ahead" in comparison,
        "with_rank_ic": bool(comparison["rank_ic"].notna().any()),
        "notes": undefined_notes(contents),
        "cost": scored_cost(contents),
        "kinds": kind_words(contents),
        "convention": contents.convention,
        "blocks": entity_blocks(contents),
        "seed_ranges": seed_ranges(contents),
        "pairs": pair_rows(contents),
        "loss": str(contents.comparison.get("loss", "")),
        "overlap": "" if horizon is None else overlap_sentence(int(horizon)),
        "latency": latency_section(contents),
    }


def _figures(contents: RunContents, looks: Mapping[str, Look]) -> dict[str, object]:
    with private_matplotlib_folder():
        from .figures import all_figures  # noqa: PLC0415 (see the folder)

    recent = recent_forecasts(contents, shown_forecasters(contents))
    return {
        "figures": all_figures(contents, looks),
        "recent_entity": "" if recent.empty else str(recent["entity"].iloc[0]),
        "num_recent": recent["forecast_time"].nunique(),
    }


def _provenance(contents: RunContents) -> dict[str, object]:
    """Return where the numbers come from, and what they do not show."""
    record = contents.record
    found = trainings(record, contents.history)
    sources = contents.config.get("sources") or []
    return {
        "folds": fold_rows(record),
        "short_fold": short_fold_note(record),
        "trainings": found,
        "kept_steps": by_fold(found),
        "excluded": excluded_rows(record),
        "checks": contents.checks.to_dict("records"),
        "sources": [source_clocks(source) for source in sources],
        "universe": universe_words(contents.config.get("universe")),
        "encoders": record.get("encoders") or [],
        "versions": dict(sorted((record.get("versions") or {}).items())),
        "record": {key: record.get(key) for key in _RECORD},
        "limits": limits(contents),
    }
