"""The latency section of the report: service and response, and where lines cross."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from run_folders import latency, latency_suite, make_run

from infoset.pipeline.latency.crossover import Crossover
from infoset.pipeline.report import latency_text, verdicts, write_report
from infoset.pipeline.report.crossover_words import (
    crossover_sentence,
    crossover_sentences,
)
from infoset.pipeline.report.inputs import RunContents
from infoset.pipeline.report.latency_section import (
    condition_sentences,
    latency_section,
    throughput_sentence,
)

NAN = math.nan


def spaces(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


def section(folder: Path) -> str:
    """Return what the latency section says."""
    page = write_report(folder).read_text(encoding="utf-8")
    part = page[page.index('<section id="latency">') :]
    part = part[: part.index("</section>")]
    part = re.sub(r"<svg.*?</svg>", "", part, flags=re.DOTALL)
    return spaces(" ".join(re.sub(r"<[^>]*>", " ", part).split())).replace(
        "&nbsp;", " "
    )


@pytest.fixture(scope="module", autouse=True)
def no_other_figure() -> Iterator[None]:
    """Draw the figure of this section alone: five of them take seconds a report."""
    others = ("difference", "history", "forecast", "calibration")
    with pytest.MonkeyPatch.context() as patch:
        for name in others:
            place = f"infoset.pipeline.report.figures.{name}_figure"
            patch.setattr(place, lambda *_: ())
        yield


def make_measured_run(folder: Path) -> Path:
    make_run(folder)
    latency_suite().to_parquet(folder / "latency.parquet", index=False)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_measured_run(tmp_path / "demo")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run with a report that is not to be changed."""
    return make_measured_run(tmp_path_factory.mktemp("measured") / "demo")


@pytest.fixture(scope="module")
def text(measured: Path) -> str:
    return section(measured)


def test_service_and_response_stand_beside_each_other_for_both(text: str) -> None:
    part = text[text.index("When requests come by themselves") :]
    for workload in ("Fresh: a whole window", "Streaming: one more event"):
        rows = part[part.index(workload) :]
        assert f"{workload} 256 events, 240 requests a second" in rows
        for name in ("linear", "softmax"):
            for time in ("service", "response"):
                assert f"{name} {time} poisson" in rows
    assert "response counts from the instant at which the request was to start" in part


def test_both_workloads_of_both_forecasters_are_in_the_table(text: str) -> None:
    part = text[text.index("One forecast at a time") : text.index("When requests")]
    fresh, streaming = part[part.index("Fresh: a") :].split("Streaming: one more event")
    assert len(re.findall(r"● linear \d", fresh)) == 4
    assert len(re.findall(r"● linear \d", streaming)) == 4
    assert "■ softmax 4,096 8.16 ms" in fresh
    assert "162 µs to 180 µs" in streaming
    assert "p99.9 needs 10,000 forecasts; there are 200" in part


def test_the_crossover_is_told_with_its_interval_for_each_workload(
    text: str, measured: Path
) -> None:
    assert re.search(
        r"Fresh: linear is cheaper than softmax from about \d[\d,]* events on \(95 % "
        r"interval \d[\d,]* to \d[\d,]*\)\.",
        text,
    )
    assert (
        "Streaming: linear is cheaper than softmax from about" in text
        or "Streaming: no crossover was found" in text
    )
    page = (measured / "report.html").read_text(encoding="utf-8")
    verdict = spaces(page[page.index('id="verdict"') : page.index('id="comparison"')])
    assert "linear is cheaper than softmax from about" in verdict


def test_conditions_throughput_and_factors_are_told(text: str) -> None:
    for words in (
        "Machine: Some CPU, 2 cores, Linux; torch 2.13.0.",
        "1 thread of torch in each process, pinned to core 1.",
        "The clock steps by 50 ns; garbage collection was off",
        "None of 34 measurements was disturbed",
        "linear, fresh at 256 events: 410 requests a second, with p99 of the response "
        "at 9.50 ms.",
        "99 % of the responses stay within 10.0 ms",
        "Threads, streams and processes",
        "1,234",
        "These are not STAC results",
    ):
        assert words in text


def test_disturbed_measurements_are_marked_and_counted(folder: Path) -> None:
    table = latency_suite()
    table.loc[[0, 3], "contention"] = "9.0 % of the time without a processor"
    table.loc[3, "waited_percent"] = 9.04
    table.to_parquet(folder / "latency.parquet", index=False)
    text = section(folder)
    assert "2 of 34 measurements were disturbed by others on the machine" in text
    assert "the processor was away for up to 9.0 % of the time of one" in text
    assert text.count(" disturbed") == 2 + 1


def test_a_run_of_an_earlier_version_has_its_table_and_claims_nothing_more(
    tmp_path: Path,
) -> None:
    text = section(make_run(tmp_path / "demo"))
    assert "One forecast at a time" in text
    for words in (
        "When requests",
        "Throughput",
        "Machine:",
        "disturbed",
        "p99.9 needs",
    ):
        assert words not in text


def test_other_factors_do_not_change_the_cost_of_one_forecast(measured: Path) -> None:
    contents = RunContents.read(measured)
    alone = contents.latency_alone
    old = latency()
    assert len(alone) == len(old)
    assert sorted(alone["p50_us"]) == pytest.approx(sorted(old["p50_us"]))


def test_the_usual_backend_is_the_one_that_is_drawn(folder: Path) -> None:
    table = latency_suite()
    fast = table[table["attention"].notna()].assign(backend="numba")
    fast["p50_us"] /= 10
    pd.concat([table, fast]).to_parquet(folder / "latency.parquet", index=False)
    contents = RunContents.read(folder)
    mine = contents.latency_alone
    assert set(mine.loc[mine["attention"].notna(), "backend"]) == {"numba"}
    text = section(folder)
    assert "Fresh: a whole window (numba)" in text
    assert text.index("(numba)") < text.index("Fresh: a whole window (torch)")
    assert text.index("(torch)") < text.index(
        "Fresh: a whole window (other forecasters)"
    )
    assert "Fresh, computed by numba: " in text
    # One that could not be measured is no reason to leave the other out.
    fast["p50_us"] = NAN
    pd.concat([table, fast]).to_parquet(folder / "latency.parquet", index=False)
    mine = RunContents.read(folder).latency_alone
    assert set(mine.loc[mine["attention"].notna(), "backend"]) == {"torch"}


def found(**changes: object) -> Crossover:
    plain: dict[str, object] = {
        "forecaster": "lin",
        "other": "soft",
        "workload": "fresh",
        "backend": "torch",
        "length": 423.4,
        "low": 388.2,
        "high": 467.0,
        "shortest": 64,
        "longest": 4096,
        "undefined": None,
    }
    return Crossover(**plain | changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {},
            "lin is cheaper than soft from about 423 events on (95 % interval 388 to "
            "467).",
        ),
        (
            {"low": 0.0},
            "lin is cheaper than soft from about 423 events on (95 % interval below 64 "
            "to 467).",
        ),
        (
            {"high": math.inf},
            "lin is cheaper than soft from about 423 events on (95 % interval 388 to "
            "above 4,096).",
        ),
        (
            {"low": NAN, "high": NAN, "length": 12_345.0},
            "lin is cheaper than soft from about 12,345 events on (without a 95 % "
            "interval: too few forecasts beside it).",
        ),
        (
            {"length": NAN, "undefined": "soft is still as cheap"},
            "no crossover was found: soft is still as cheap.",
        ),
    ],
)
def test_crossovers_are_put_into_words(
    changes: dict[str, object], sentence: str
) -> None:
    assert spaces(crossover_sentence(found(**changes))) == sentence


def test_a_backend_is_named_where_there_are_several() -> None:
    one = crossover_sentences([found(), found(workload="streaming")])
    assert [text.partition(":")[0] for text in one] == ["Fresh", "Streaming"]
    two = crossover_sentences([found(), found(backend="numba")])
    assert [text.partition(":")[0] for text in two] == [
        "Fresh, computed by torch",
        "Fresh, computed by numba",
    ]


def test_a_throughput_that_is_undefined_says_why() -> None:
    row = {
        "forecaster": "lin",
        "backend": "torch",
        "workload": "fresh",
        "history_length": 64.0,
        "rate_hz": NAN,
        "p99_us": NAN,
        "undefined": "p99 is above 2,000 µs even at 6 requests a second",
    }
    assert throughput_sentence(row, with_backend=True) == (
        "lin (torch), fresh at 64 events: no rate is known: p99 is above 2,000 µs even "
        "at 6 requests a second."
    )


def test_the_cores_of_processes_side_by_side_are_told() -> None:
    table = latency_suite().assign(cores="1 | 0")
    assert "1 thread of torch in each process, pinned to core 1 and core 0." in (
        condition_sentences(table)
    )


def test_several_threads_and_unpinned_ones_are_told() -> None:
    table = latency_suite().assign(threads=4, cores="")
    assert "4 threads of torch in each process, not pinned to a core." in (
        condition_sentences(table)
    )


def test_nothing_measured_has_no_section(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "demo")
    (folder / "latency.parquet").unlink()
    told = latency_section(RunContents.read(folder))
    assert told["blocks"] == told["opened"] == told["crossovers"] == []
    assert section(folder).endswith("No latency was measured.")


def test_the_table_for_the_terminal_tells_service_and_response(measured: Path) -> None:
    cells, sentences = latency_text(measured)
    assert len(cells) == 2 * 2 * 4
    rows = {
        (row["workload"], row["events"], row["forecaster"]): row
        for row in cells.to_dict("records")
    }
    row = rows["fresh", "256", "linear"]
    assert spaces(row["p50"]) == "582 µs"
    assert spaces(row["p99 response"]) == "3.32 ms"
    assert rows["fresh", "64", "linear"]["p99 response"] == ""
    assert any("requests a second" in sentence for sentence in sentences)
    assert any("cheaper than" in sentence for sentence in sentences)


@pytest.mark.parametrize(
    ("undefined", "sentence"),
    [
        (None, "Computed by numba, lin is cheaper than soft from about 70 events on"),
        ("linear is cheaper at every length", ""),
    ],
)
def test_a_verdict_is_about_the_backend_whose_medians_stand_beside_it(
    undefined: str | None, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch_ = found(length=500.0)
    numba = found(backend="numba", length=70.0, undefined=undefined)
    monkeypatch.setattr(verdicts, "scored_workload", lambda _: (torch_.workload, 64))
    contents = object.__new__(RunContents)
    object.__setattr__(contents, "crossovers", [torch_, numba])
    said = verdicts._crossover(contents, torch_.forecaster, torch_.other)
    assert sentence in said
    assert "500" not in said
