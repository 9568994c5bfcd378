"""The tables of the study, for a terminal and for a Markdown file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from infoset.pipeline.report.numbers import (
    count,
    duration,
    p_value,
    percent,
    plain,
    signed_percent,
)

Study = Mapping[str, Any]
_NOTHING = ""
_LABELS = {"mean": "plain mean", "favor_k": "favor", "favor_4k": "favor"}


@dataclass(frozen=True)
class Cells:
    """A table as texts.

    Attributes
    ----------
    title : str
    headings : tuple of str
    rows : list of tuple of str
    note : str
        What the numbers are.
    """

    title: str
    headings: tuple[str, ...]
    rows: list[tuple[str, ...]]
    note: str

    def rich(self) -> Table:
        """Return the table for a terminal."""
        table = Table(
            title=self.title,
            caption=self.note,
            caption_justify="left",
            padding=(0, 0),
        )
        for place, heading in enumerate(self.headings):
            table.add_column(heading, justify="left" if place == 0 else "right")
        for row in self.rows:
            table.add_row(*row)
        return table

    def markdown(self) -> str:
        """Return the table as Markdown, with its title and note."""
        lines = [
            f"## {self.title}",
            "",
            _line(self.headings),
            _line(["---", *["---:"] * (len(self.headings) - 1)]),
            *(_line(row) for row in self.rows),
            "",
            self.note,
        ]
        return "\n".join(lines) + "\n"


def all_cells(study: Study) -> tuple[Cells, ...]:
    """Return the tables of a study, as `study.json` holds it."""
    return replacement_cells(study), recall_cells(study), forgotten_cells(study)


def replacement_cells(study: Study) -> Cells:
    """Return one row per attention: errors, drift, loss, latency."""
    rows = study["replacement"]
    lengths = [one["num_events"] for one in rows[0]["latency"]]
    tuning = study["settings"]["tuning"]
    headings = (
        "attention",
        "kernel error",
        "its bias",
        "ratio error",
        "its bias",
        "drift",
        "loss (p)",
        "tuned drift",
        "tuned loss (p)",
        *(f"{count(length)} events" for length in lengths),
    )
    note = (
        "Kernel error: typical relative error of an entry. Ratio error: of the "
        "attention output, relative to its size. Bias: over draws of the features, "
        "± one standard error. Drift: of all quantiles, in widths of softmax's 90 % "
        "interval. Loss: change against softmax (p-value of Diebold-Mariano). Plain "
        f"mean: equal weights, so no attention at all. Tuned: after {tuning['num_steps']} "
        f"further steps at learning rate {tuning['learning_rate']:g}, against softmax "
        "after the same steps. Events: median time of a fresh forecast from so many."
    )
    cells = [_replacement_row(row) for row in rows]
    return Cells("Softmax attention replaced", headings, cells, note)


def recall_cells(study: Study) -> Cells:
    """Return the accuracy of each map at each number of pairs."""
    accuracy, settings = study["recall"]["accuracy"], study["settings"]["recall"]
    numbers = settings["num_pairs"]
    rows = []
    for name in settings["maps"]:
        mine = [cell for cell in accuracy if cell["map"] == name]
        by_number = {cell["num_pairs"]: cell["accuracy"] for cell in mine}
        shown = [percent(100 * by_number[number]) for number in numbers]
        label = _LABELS.get(name, name)
        width = mine[0]["num_features"]
        rows.append((label, "all pairs" if width is None else str(width), *shown))
    note = (
        f"Share of right answers; K = {settings['width']}, guessing gives "
        f"{percent(100 * study['recall']['chance'])}. State: R rows per value component."
    )
    headings = ("map", "state", *(f"{count(number)} pairs" for number in numbers))
    return Cells("Associative recall by stored pairs", headings, rows, note)


def forgotten_cells(study: Study) -> Cells:
    """Return the share of stored values that no reading can give back."""
    records = study["recall"]["forgotten"]
    numbers = study["settings"]["recall"]["num_pairs"]
    rows = []
    for width in dict.fromkeys(record["num_features"] for record in records):
        mine = {r["num_pairs"]: r for r in records if r["num_features"] == width}
        key = "softmax" if width is None else "least"
        shown = [plain(mine[number][key], 3) for number in numbers]
        rows.append(("softmax" if width is None else f"R = {width}", *shown))
    note = (
        "Mean squared error of orthonormal values read back: at least 1 - R/n for any "
        "map and any training (one-hot keys reach it); softmax as measured."
    )
    headings = ("state", *(f"{count(number)} pairs" for number in numbers))
    return Cells("What a fixed width must forget", headings, rows, note)


def markdown(study: Study, figures: Sequence[str]) -> str:
    """Return the study as a page: what was trained, the tables, the figures."""
    parts = [
        "# What replacing softmax does\n",
        f"    {study['command']}\n",
        forecaster_sentence(study) + "\n",
        *(cells.markdown() for cells in all_cells(study)),
        *(f"![{name.removesuffix('.svg')}]({name})\n" for name in figures),
    ]
    return "\n".join(parts)


def forecaster_sentence(study: Study) -> str:
    """Say what was trained, on what, and whether it learned anything."""
    about = study["forecaster"]
    before, after = about["validation_loss_before"], about["validation_loss_after"]
    scale = (
        "told the causal volatility of the experiment"
        if about["causal_scale"]
        else "not told the causal volatility of the experiment: it has to read it from "
        "the events"
    )
    tuned = study["replacement"][0]["tuned"]
    further = (
        ""
        if tuned is None
        else f" The further steps of tuning alone change its loss by {_loss(tuned)}."
    )
    return (
        f"The forecaster: softmax attention as in `{study['config']}`, fold "
        f"{about['fold']}, {about['num_steps']} steps at learning rate "
        f"{about['learning_rate']:g} without early stopping, {scale}. Training changed "
        f"the validation loss by {signed_percent(100 * (after / before - 1), 2)}; "
        f"without it the test loss would differ by {_loss(about['untrained'])}. Test span: "
        f"{about['test_span'][0][:10]} to {about['test_span'][1][:10]}, "
        f"{count(about['num_forecasts'])} forecasts at "
        f"{count(about['num_forecast_times'])} times.{further}"
    )


def _replacement_row(row: Mapping[str, Any]) -> tuple[str, ...]:
    kernel, ratio = row["kernel_error"], row["ratio_error"]
    as_is, tuned = row["as_is"], row["tuned_alike"]
    return (
        _LABELS.get(row["name"], row["name"]),
        _NOTHING if kernel is None else percent(100 * kernel["typical"]),
        _NOTHING
        if kernel is None
        else _with_error(kernel["bias"], kernel["bias_error"]),
        _NOTHING if ratio is None else percent(100 * ratio["error"]),
        _NOTHING if ratio is None else _bias(ratio),
        _NOTHING if as_is is None else percent(100 * as_is["drift"], 2),
        _NOTHING if as_is is None else _loss(as_is),
        _NOTHING if tuned is None else percent(100 * tuned["drift"], 2),
        _NOTHING if tuned is None else _loss(tuned),
        *(_time(one) for one in row["latency"]),
    )


def _with_error(value: float, error: float) -> str:
    return f"{plain(100 * value, 1)} ± {percent(100 * error)}"


def _bias(ratio: Mapping[str, Any]) -> str:
    if ratio["bias"] is None:
        return f"< {percent(100 * ratio['bias_bound'])}"
    return _with_error(ratio["bias"], ratio["bias_error"])


def _loss(change: Mapping[str, Any]) -> str:
    if change["p_value"] is None:
        return str(change["undefined"])
    p = p_value(change["p_value"]).replace(" ", "")
    return f"{signed_percent(change['percent'], 2)} ({p})"


def _time(one: Mapping[str, Any]) -> str:
    return "-" if one["p50_us"] is None else duration(one["p50_us"])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
