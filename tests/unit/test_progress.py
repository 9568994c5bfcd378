"""What a run says while it works: bars for people, few lines for a log, or nothing."""

import logging
import re

import pytest

from infoset.pipeline.progress import Progress

LINE = r" +\d+ s  "


def test_in_a_log_file_each_stage_is_one_plain_line(capsys) -> None:
    progress = Progress(enabled=True)
    progress.stage("Scoring [and] comparing")
    progress.warning("runs/a holds another run")
    out, err = capsys.readouterr()
    assert out == ""
    stage, warning = err.splitlines()
    assert re.fullmatch(rf"{LINE}Scoring \[and\] comparing", stage)
    assert re.fullmatch(rf"{LINE}runs/a holds another run", warning)


@pytest.mark.parametrize(
    ("total", "told"),
    [(50, [13, 25, 38]), (4, [1, 2, 3]), (2, [1]), (1, []), (0, [])],
)
def test_a_long_work_is_told_by_its_quarters(total, told, capsys) -> None:
    items = list(Progress(enabled=True).track(range(total), total, "Fitting"))
    assert items == list(range(total))
    lines = capsys.readouterr().err.splitlines()
    assert [int(re.findall(r"Fitting: (\d+) of", line)[0]) for line in lines] == told
    assert all(line.endswith(f"of {total} done") for line in lines)


def test_without_progress_only_a_warning_is_heard_and_through_logging(
    capsys, caplog
) -> None:
    progress = Progress(enabled=False)
    with caplog.at_level(logging.WARNING, logger="infoset"):
        progress.stage("Scoring")
        assert list(progress.track("ab", 2, "Fitting")) == ["a", "b"]
        progress.warning("runs/a holds another run")
    assert capsys.readouterr() == ("", "")
    assert caplog.messages == ["runs/a holds another run"]


def test_on_a_terminal_there_is_a_bar_and_the_stages(capsys, monkeypatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    progress = Progress(enabled=True)
    progress.stage("Scoring [and] comparing")
    assert list(progress.track("ab", 2, "Fitting")) == ["a", "b"]
    err = capsys.readouterr().err
    assert "Scoring [and] comparing" in err
    assert "2/2" in err
    assert not re.match(LINE, err)
