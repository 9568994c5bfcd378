"""The report: complete, offline, safe, the same every time, and calm about gaps."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import yaml
from rich.console import Console
from run_folders import (
    KINDS,
    certificate,
    comparison,
    config,
    forecasts,
    latency,
    make_run,
    record,
    scores,
    write_json,
)

from infoset.pipeline.report import comparison_table, comparison_text, write_report
from infoset.pipeline.report.inputs import RunContents
from infoset.pipeline.report.looks import looks
from infoset.pipeline.report.tables import (
    calibration,
    recent_forecasts,
    shown_forecasters,
)
from infoset.pipeline.report.verdicts import look_ahead
from infoset.pipeline.results_table import results_table

Attributes = list[tuple[str, str | None]]


class Page(HTMLParser):
    """What a browser would make of the page: its elements, texts and ids."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self.attributes: set[str] = set()
        self.svgs: list[dict[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        self.tags.append(tag)
        self.attributes.update(name for name, _ in attrs)
        given = {name: value or "" for name, value in attrs}
        if "id" in given:
            self.ids.append(given["id"])
        self.links += [given[key] for key in ("href", "src") if key in given]
        if tag == "svg":
            self.svgs.append(given)

    def handle_startendtag(self, tag: str, attrs: Attributes) -> None:
        self.handle_starttag(tag, attrs)

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def visible(folder: Path) -> str:
    """Write the report and return what it says."""
    return said(write_report(folder).read_text(encoding="utf-8"))


def said(page: str) -> str:
    """Return the text of a page without its style, with ordinary spaces and signs."""
    body = page[page.index("<body>") :]
    text = Page(body).text
    return text.replace("\N{NO-BREAK SPACE}", " ").replace("\N{MINUS SIGN}", "-")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "demo")


@pytest.fixture(scope="module")
def page(run: Path) -> str:
    return write_report(run).read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_run(tmp_path / "demo")


def test_the_report_lies_in_the_folder_of_its_run(run: Path, page: str) -> None:
    assert (run / "report.html").is_file()
    assert not list(run.glob("*.partial*"))
    assert page.startswith("<!DOCTYPE html>")


def test_the_sections_come_in_the_order_in_which_people_ask(page: str) -> None:
    found = re.findall(r'<section id="([a-z]+)"', page)
    assert found == [
        "verdict",
        "comparison",
        "entities",
        "history",
        "latency",
        "forecasts",
        "calibration",
        "folds",
        "excluded",
        "certificate",
        "clocks",
        "provenance",
        "limits",
    ]
    assert {f"#{name}" for name in found} <= set(Page(page).links)


def test_the_page_loads_nothing_and_runs_nothing(page: str) -> None:
    assert not re.search(r"https?:|//\w", page)
    parsed = Page(page)
    outside = {"script", "link", "img", "iframe", "object", "embed", "base", "form"}
    assert not outside & set(parsed.tags)
    assert all(link.startswith("#") for link in parsed.links)
    assert not any(name.startswith("on") for name in parsed.attributes)
    assert "@import" not in page
    assert all(place.startswith("#") for place in re.findall(r"url\(([^)]*)\)", page))


def test_the_page_is_small(page: str) -> None:
    assert len(page) < 500_000


def test_every_figure_has_a_text_alternative(page: str) -> None:
    parsed = Page(page)
    assert len(parsed.svgs) == 9
    for svg in parsed.svgs:
        assert svg["role"] == "img"
        for name in svg["aria-labelledby"].split():
            assert parsed.ids.count(name) == 1
    titles = re.findall(r"<title id=[^>]*>([^<]*)</title>", page)
    descriptions = re.findall(r"<desc id=[^>]*>([^<]*)</desc>", page)
    assert len(titles) == len(descriptions) == 9
    assert all(text.strip() for text in titles + descriptions)


def test_ids_are_unique_and_what_refers_to_them_finds_them(page: str) -> None:
    ids = Page(page).ids
    assert len(ids) == len(set(ids))
    inner = re.findall(r"url\(#([^)]*)\)", page)
    inner += re.findall(r'href="#([^"]*)"', page)
    assert set(inner) <= set(ids)


def test_figures_take_their_colours_from_the_page(page: str) -> None:
    drawings = "".join(re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL))
    assert "var(--series-0)" in drawings
    assert "currentColor" in drawings
    assert not re.search(r"#0[0-9a-f]{5}\b", drawings)
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page


def test_the_verdict_says_who_wins_by_how_much_and_whether_it_is_luck(
    page: str,
) -> None:
    text = said(page)
    assert "The better of two attention forecasters, linear, beats ewma" in text
    assert "1.1 % lower (95 % interval 1.8 % lower to 0.32 % lower; p = 0.004)" in text
    assert "linear cannot be told from softmax: its loss is 0.60 % lower" in text
    assert "With the scored history, 256 events read anew, a forecast takes" in text
    assert "At 256 events softmax 1.1 times as fast; at 4,096 events linear 1." in text
    assert text.index("beats ewma") < text.index("Every pair")


def test_the_page_tells_what_was_excluded_assumed_and_used(page: str) -> None:
    text = said(page)
    for words in (
        "forecast times of DGS10 no target 12",
        "Known when the next H.15 appears, and never before.",
        "the date in column date, at 15:30 America/New_York",
        "1 session later at 16:15 America/New_York (calendar us_federal_board)",
        "0123456789abcdef",
        "f" * 32,
        "infoset run demo",
        "torch 2.13.0",
        "Passed: 2 checks found no look-ahead.",
        "2000-01-03 to 2009-12-31",
        "rank IC: fewer than 3 entities at a forecast time",
        "p-values are not corrected for the 6 comparisons",
        "linear: 0.2463 to 0.2469 over 2 seeds.",
        "DGS10, in bp",
    ):
        assert words in text


def test_equal_runs_give_equal_bytes_whatever_the_settings_of_matplotlib(
    run: Path, page: str
) -> None:
    before = mpl.rcParams["font.size"]
    with mpl.rc_context({"font.size": 31, "svg.fonttype": "path", "axes.grid": False}):
        again = write_report(run).read_text(encoding="utf-8")
        assert mpl.rcParams["font.size"] == 31
    assert mpl.rcParams["font.size"] == before
    assert again == page


@pytest.mark.slow
def test_another_process_writes_the_same_bytes_and_nothing_at_home(
    run: Path, page: str, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    code = (
        "import sys; from pathlib import Path; "
        "from infoset.pipeline.report import write_report; "
        "write_report(Path(sys.argv[1])); "
        "print([name for name in ('torch', 'mlflow') if name in sys.modules])"
    )
    environment = {
        "HOME": str(home),
        "PATH": "",
        "PYTHONHASHSEED": "12",
        "OMP_NUM_THREADS": "1",
        "TZ": "Asia/Tokyo",
    }
    done = subprocess.run(
        [sys.executable, "-c", code, str(run)],
        capture_output=True,
        check=True,
        env=environment,
        text=True,
    )
    assert done.stdout.strip() == "[]"
    assert (run / "report.html").read_text(encoding="utf-8") == page
    assert not list(home.rglob("*"))


HOSTILE = "<script>alert(1)</script>"
QUOTED = '"><img src=x onerror=alert(1)> $\\frac{1$ #010101'
BROKEN = "_\x07\ud800name"


def test_hostile_names_are_shown_and_not_obeyed(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "demo")
    settings = config(entities=(HOSTILE, QUOTED), name=HOSTILE)
    settings["description"] = f"{HOSTILE} {{{{ 7 * 191 }}}}"
    settings["targets"][0]["unit"] = QUOTED
    settings["sources"][0]["assumptions"] = [HOSTILE]
    settings["sources"][0]["stream"] = HOSTILE
    names = {"softmax": QUOTED, "historical": HOSTILE}
    settings["forecasters"] = {names.get(n, n): kind for n, kind in KINDS.items()}
    (folder / "config.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    frame = forecasts(entities=(HOSTILE, QUOTED))
    frame["forecaster"] = frame["forecaster"].replace(names)
    frame.to_parquet(folder / "forecasts.parquet", index=False)

    def renamed(content: dict[str, Any]) -> dict[str, Any]:
        text = json.dumps(content)
        for old, new in names.items():
            text = text.replace(json.dumps(old), json.dumps(new))
        answer: dict[str, Any] = json.loads(text)
        return answer

    marked = renamed(scores(entities=(HOSTILE, QUOTED)))
    for row in marked["by_entity"]:
        row["unit"] = QUOTED
    marked["convention"] = HOSTILE
    write_json(folder / "scores.json", marked)
    write_json(folder / "comparison.json", renamed(comparison()))
    measured = latency()
    measured["forecaster"] = measured["forecaster"].replace(names)
    measured.to_parquet(folder / "latency.parquet", index=False)
    told = record() | {"machine": HOSTILE, "command": QUOTED, "started": HOSTILE}
    told["versions"] = {HOSTILE: QUOTED}
    told["excluded"] = [{"what": HOSTILE, "reason": QUOTED, "count": 3}]
    write_json(folder / "run.json", told)
    checked = certificate()
    checked["checks"][0] |= {"name": HOSTILE, "detail": QUOTED}
    write_json(folder / "certificate.json", checked)

    page = write_report(folder).read_text(encoding="utf-8")
    parsed = Page(page)
    assert not {"script", "img"} & set(parsed.tags)
    assert not any(name.startswith("on") for name in parsed.attributes)
    assert HOSTILE not in page
    assert parsed.text.count(HOSTILE) > 15
    assert parsed.text.count("onerror=alert(1)") > 10
    assert "{{ 7 * 191 }}" in parsed.text


def test_unprintable_and_endless_names_do_no_harm(folder: Path) -> None:
    settings = config(entities=(BROKEN, "x" * 500))
    settings["targets"][0]["unit"] = "b\x00p"
    text = json.dumps(settings)  # JSON is YAML, and can hold what YAML refuses
    (folder / "config.yaml").write_text(text, encoding="utf-8")
    write_json(folder / "scores.json", scores(entities=("\x07name", "x" * 500)))
    frame = forecasts(entities=("\x07name", "x" * 500))
    frame["forecaster"] = frame["forecaster"].replace("linear", "_\x07" + "y" * 90)
    frame.to_parquet(folder / "forecasts.parquet", index=False)
    told = json.dumps(scores(entities=("\x07name", "x" * 500)))
    name = json.dumps("_\x07" + "y" * 90)
    (folder / "scores.json").write_text(told.replace('"linear"', name))
    write_json(folder / "run.json", record() | {"machine": "CPU \ud800"})
    page = write_report(folder).read_bytes().decode("utf-8")
    assert "yyy…" in page


def test_optional_files_that_are_missing_are_said_to_be_missing(folder: Path) -> None:
    for name in (
        "comparison.json",
        "latency.parquet",
        "certificate.json",
        "run.json",
    ):
        (folder / name).unlink()
    text = visible(folder)
    for words in (
        "linear and softmax cannot be tested against each other: the two were not",
        "No latency was measured.",
        "latency of linear and softmax attention was not measured side by side.",
        "No certificate was made: this run was not checked for look-ahead.",
        "That no future information was used: this was not checked.",
        "The folds of this run were not stored.",
        "What this run left out was not stored.",
        "No difference to ewma is defined, so none is drawn.",
        "No two forecasters were compared.",
        "not stored",
    ):
        assert words in text


def test_an_undefined_comparison_is_printed_with_its_reason(folder: Path) -> None:
    given = comparison()
    nothing = dict.fromkeys(("low", "high", "statistic", "p_value"))
    nothing |= {"mean_difference": 0.1, "undefined": "9 times are too few"}
    given["pairs"][1] |= nothing  # ewma and linear
    write_json(folder / "comparison.json", given)
    told = scores()
    told["by_forecaster"][1] |= {
        "coverage_90": None,
        "undefined": "coverage_90 needs q05 and q95",
        "num_undefined": 3,
    }
    told["by_forecaster"][3]["crps"] = float("inf")
    write_json(folder / "scores.json", told)
    text = visible(folder)
    assert "linear and ewma cannot be tested against each other: 9 times are" in text
    assert "linear: 9 times are too few; softmax: coverage_90 needs q05 and q95" in text
    assert "softmax: 3 forecasts have no finite target or value" in text
    table = comparison_table(folder).set_index("forecaster")
    assert table.loc["linear", "undefined"] == "9 times are too few"
    assert table["p_value"].isna().loc["linear"]
    assert table["crps"].isna().loc["historical"]


def test_a_failed_certificate_is_the_first_thing_one_reads(folder: Path) -> None:
    write_json(folder / "certificate.json", certificate(num_failures=2))
    text = visible(folder)
    alarm = "Failed: 1 of 2 checks found look-ahead. Do not rely on the numbers"
    assert text.index(alarm) < text.index("Does attention beat the baseline?")


def test_a_certificate_that_says_passed_over_a_failure_is_not_believed(
    folder: Path,
) -> None:
    write_json(
        folder / "certificate.json", certificate(num_failures=2) | {"passed": True}
    )
    passed, text = look_ahead(RunContents.read(folder))
    assert passed is False
    assert text.startswith("Failed: 1 of 2 checks")


def test_own_forecasters_on_an_own_log_without_a_baseline_have_a_report(
    folder: Path,
) -> None:
    settings = config(baseline=None) | {
        "sources": [],
        "forecasters": {},
        "seeds": [0],
        "history": "all",
        "history_lengths": [],
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    frame = forecasts()
    frame["history"] = "all"
    frame.loc[frame.index % 7 == 0, "target"] = np.nan
    frame.to_parquet(folder / "forecasts.parquet", index=False)
    told = scores()
    told["by_history"] = told["by_history"][:1]
    write_json(folder / "scores.json", told)
    write_json(folder / "comparison.json", comparison(baseline=None))
    text = visible(folder)
    for words in (
        "The configuration names no baseline.",
        "Linear and softmax attention did not both take part.",
        "Only one history (all) was run",
        "The events were given from Python",
        "No baseline is named, so no difference to one is shown.",
    ):
        assert words in text
    assert "each network was fitted with one seed" not in text


def test_a_run_without_any_forecast_at_its_history_has_a_report(folder: Path) -> None:
    settings = config() | {"history": {"since": "year"}}
    (folder / "config.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    text = visible(folder)
    assert "There are no forecasts with bands to draw." in text
    assert "No forecast has an outcome, so calibration is undefined." in text


def test_the_table_for_the_terminal_holds_the_numbers_of_the_report(
    run: Path, page: str
) -> None:
    table = comparison_table(run)
    assert list(table["forecaster"]) == ["linear", "softmax", "ewma", "historical"]
    linear = table.iloc[0]
    # The pair is stored as ewma against linear, so signs and bounds turn round.
    assert linear["difference"] == pytest.approx(-0.0027, abs=1e-12)
    assert (linear["difference_low"], linear["difference_high"]) == (-0.0046, -0.0008)
    assert linear["percent"] == pytest.approx(100 * -0.0027 / 0.2493, rel=1e-9)
    assert linear["outcome"] == "better"
    # The history is the last 256: each forecast reads its window anew.
    assert linear["forecast_p50_us"] == pytest.approx(300 + 1.1 * 256)
    baseline = table.iloc[2]
    assert np.isnan(baseline["difference"])
    assert baseline["outcome"] is None
    assert baseline["forecast_p50_us"] == 61.0
    cells = comparison_text(run).set_index("forecaster")
    assert cells.loc["ewma", "against ewma (95 % interval)"] == "baseline"
    text = said(page)
    for cell in cells.loc["linear"].str.split(r" \(").str[0]:
        plain = cell.replace("\N{NO-BREAK SPACE}", " ")
        assert plain.replace("\N{MINUS SIGN}", "-") in text


def test_a_rounding_difference_is_called_identical_and_not_ranked(folder: Path) -> None:
    given = comparison()
    given["pairs"][1] |= {
        "mean_difference": 1e-9,
        "low": 4e-10,
        "high": 3e-9,
        "p_value": 0.001,
    }
    write_json(folder / "comparison.json", given)
    text = visible(folder)
    assert "linear is identical to ewma" in text
    assert "beats ewma" not in text
    table = comparison_table(folder).set_index("forecaster")
    assert table.loc["linear", "outcome"] == "identical"
    cells = comparison_text(folder).set_index("forecaster")
    assert cells.loc["linear", "against ewma (95 % interval)"] == "identical"
    assert cells.loc["linear", "p-value"] == ""
    row = text[text.index("First Second") : text.index("Negative: the first")]
    assert row.count("identical") == 1


def test_the_report_tells_which_step_each_fit_kept(page: str) -> None:
    text = said(page)
    assert "In 2 of 4 fits (2 folds, 2 seeds) no training step of linear" in text
    assert "In all 4 fits (2 folds, 2 seeds) training improved" in text
    assert "0, the start seed 0" in text
    assert "75 of 150 seed 1" in text
    assert text.index("beats ewma") < text.index("no training step of linear")


def test_a_run_that_tells_nothing_of_its_training_has_a_report(folder: Path) -> None:
    told = record()
    del told["training"]
    write_json(folder / "run.json", told)
    assert "step kept" not in visible(folder)


def test_a_run_from_python_names_what_no_command_line_gives(folder: Path) -> None:
    told = record() | {
        "command": "infoset.pipeline.run('demo', log=..., forecasters={...})",
        "given": ["an own log", "the forecaster mine"],
    }
    write_json(folder / "run.json", told)
    text = visible(folder)
    assert (
        "from Python, by infoset.pipeline.run('demo', log=..., forecasters={...}) . No "
        "command line repeats it: an own log, the forecaster mine came from the caller."
    ) in text
    assert "Command infoset" not in text


def test_every_forecaster_is_explained(page: str) -> None:
    text = said(page)
    part = text[text.index("What they are") :]
    for words in (
        "ewma Scaled quantiles: those of past targets in units of their volatility",
        "historical The quantiles of the entity's past targets",
        "linear Causal linear attention over the events",
        "softmax Causal softmax attention over the same events",
    ):
        assert f"{words}" in part


def test_with_a_carried_state_the_cost_is_the_streamed_one(folder: Path) -> None:
    settings = config() | {"history": "all"}
    (folder / "config.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    frame = forecasts()
    frame["history"], frame["num_events"] = "all", 900
    frame.to_parquet(folder / "forecasts.parquet", index=False)
    cells = comparison_text(folder).set_index("forecaster")
    heading = "streamed forecast, 1,024 events"
    costs = cells[heading].str.replace("\N{NO-BREAK SPACE}", " ")
    assert costs["linear"] == "180 µs"
    assert costs["ewma"] == "61.0 µs (fresh, 256 events)"
    assert "1,024 events in a state that takes in one more" in visible(folder)


def test_a_latency_that_was_not_measured_has_its_reason(folder: Path) -> None:
    measured = latency()
    measured["undefined"] = None
    at = (measured["history_length"] == 256) & (measured["workload"] == "fresh")
    there = at & measured["attention"].notna()
    measured.loc[there, ["p50_us", "p95_us", "p99_us"]] = np.nan
    measured.loc[there, "undefined"] = "the longest timeline holds 200 events"
    measured = measured[measured["forecaster"] != "historical"]
    measured.to_parquet(folder / "latency.parquet", index=False)
    text = visible(folder)
    assert (
        "fresh forecast, 256 events of linear, softmax and historical: the longest "
        "timeline holds 200 events"
    ) in text
    assert "not measured the longest timeline holds 200 events" in text


def test_a_narrow_terminal_gets_fewer_columns_and_no_fragments(run: Path) -> None:
    for width, num_columns in ((78, 5), (150, 8)):
        console = Console(width=width)
        with console.capture() as captured:
            console.print(results_table(run, width=width))
        lines = captured.get().splitlines()
        assert max(len(line) for line in lines) <= width
        rows = [line for line in lines if line.startswith("│")]
        assert [len(row.strip("│").split("│")) for row in rows] == 4 * [num_columns]
        assert ("Intervals of the loss and" in captured.get()) == (width < 100)


def test_the_share_below_a_quantile_counts_defined_outcomes_only(folder: Path) -> None:
    frame = pd.DataFrame(
        {
            "forecaster": "a",
            "history": "last 256",
            "fold": 0,
            "seed": 0,
            "entity": "X",
            "forecast_time": pd.date_range("2020-01-01", periods=4, tz="UTC"),
            "q25": 0.0,
            "q75": 1.0,
            "target": [-1.0, 0.0, 0.5, np.nan],
        }
    )
    frame.to_parquet(folder / "forecasts.parquet", index=False)
    found = calibration(RunContents.read(folder))
    assert found["level"].tolist() == [0.25, 0.75]
    assert found["share"].tolist() == [2 / 3, 1.0]
    assert found["num_forecasts"].tolist() == [3, 3]


def test_the_entity_with_most_forecasts_is_drawn_with_its_newest(run: Path) -> None:
    contents = RunContents.read(run)
    assert shown_forecasters(contents) == ["linear", "softmax"]
    recent = recent_forecasts(contents, ["linear", "softmax"], most=30)
    assert set(recent["entity"]) == {"DGS10"}
    assert set(recent["seed"]) == {0}
    assert recent.groupby("forecaster").size().tolist() == [30, 30]
    newest = contents.forecasts["forecast_time"].max()
    assert (recent.groupby("forecaster")["forecast_time"].max() == newest).all()


def test_forecasters_keep_distinct_looks_however_many_there_are() -> None:
    names = [f"forecaster {number}" for number in range(12)]
    kinds = dict.fromkeys(names, "ridge") | {names[3]: "linear", names[5]: "softmax"}
    found = looks(names, kinds, names[7])
    assert list(found) == names
    assert len({(look.placeholder, look.marker) for look in found.values()}) == 12
    assert found[names[3]].variable == "var(--series-0)"
    assert found[names[5]].variable == "var(--series-1)"
    assert found[names[7]].variable == "var(--series-2)"
    others = [look for name, look in found.items() if name not in names[3:8:2]]
    assert not {look.variable[-2] for look in others} & set("012")


@pytest.mark.parametrize("name", ["config.yaml", "forecasts.parquet", "scores.json"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(ValueError, match=rf"a run must hold .*; got no {name} in "):
        write_report(folder)
    assert not (folder / "report.html").exists()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("scores.json", "{", r"scores\.json must be valid JSON; got .* Run the"),
        ("scores.json", "[]", r"scores\.json must hold keys and values; got list"),
        ("run.json", "\x80", r"run\.json must be valid JSON"),
        ("config.yaml", "a: [", r"config\.yaml must be valid YAML"),
        ("config.yaml", "- a", r"config\.yaml must hold keys and values; got list"),
        ("forecasts.parquet", "x", r"forecasts\.parquet must be a Parquet file"),
        ("latency.parquet", "x", r"latency\.parquet must be a Parquet file"),
    ],
)
def test_a_file_that_cannot_be_understood_is_named(
    folder: Path, name: str, content: str, message: str
) -> None:
    (folder / name).write_text(content, encoding="latin-1")
    with pytest.raises(ValueError, match=message):
        write_report(folder)


def test_a_missing_column_is_named(folder: Path) -> None:
    frame = forecasts().drop(columns="fold")
    frame.to_parquet(folder / "forecasts.parquet", index=False)
    with pytest.raises(ValueError, match=r"must have the columns .*; got none named f"):
        write_report(folder)


def test_a_report_that_cannot_be_written_leaves_nothing_behind(folder: Path) -> None:
    (folder / "report.html").mkdir()
    with pytest.raises(ValueError, match="the run's folder must be writable; got "):
        write_report(folder)
    assert not list(folder.glob("*.partial*"))
