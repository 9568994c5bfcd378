"""The mark of a finished run: true when it is made, and renewed with its results."""

import json
from pathlib import Path

from infoset.pipeline.run_files import RunFiles


def finished(folder: Path) -> RunFiles:
    files = RunFiles(folder)
    for path in files.results:
        path.write_text(path.name)
    files.mark_done("request")
    return files


def test_a_result_that_changed_makes_a_run_unfinished(tmp_path: Path) -> None:
    files = finished(tmp_path)
    assert files.is_done("request")
    files.latency.write_text("measured anew")
    assert not files.is_done("request")


def test_a_renewed_mark_holds_the_new_results_of_the_same_request(
    tmp_path: Path,
) -> None:
    files = finished(tmp_path)
    files.latency.write_text("measured anew")
    files.mark_done_again()
    assert files.is_done("request")
    assert not files.is_done("another")


def test_a_run_that_was_not_finished_is_not_made_so(tmp_path: Path) -> None:
    files = finished(tmp_path)
    files.done.unlink()
    files.mark_done_again()
    assert not files.done.exists()


def test_a_mark_without_a_request_stays_without_one(tmp_path: Path) -> None:
    files = finished(tmp_path)
    files.mark_done(None)
    files.mark_done_again()
    assert json.loads(files.done.read_text())["request"] is None
