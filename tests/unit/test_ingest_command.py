"""`infoset ingest`: the account it prints, what it stores, and how it refuses."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from store_logs import files_of, object_store

from infoset.data.sources import event_log
from infoset.data.store import Store
from infoset.pipeline import ingest as ingesting
from infoset.pipeline.cli import main
from infoset.pipeline.config import Experiment, load_experiment
from infoset.pipeline.ingest import ingest
from infoset.pipeline.request import request_digest
from infoset.pipeline.source_file import read_source_file

PRICES = """id,t,known,close
A,2024-01-02T21:00:00Z,2024-01-02T21:05:00Z,1.5
A,2024-01-02T21:00:00Z,2024-01-02T21:05:00Z,1.5
A,2024-02-02T21:00:00Z,2024-02-02T21:05:00Z,2.5
B,2024-01-02T21:00:00Z,,3.5
B,2024-01-03T21:00:00Z,2024-01-03T21:05:00Z,
"""
MORE = PRICES + "B,2024-02-02T21:00:00Z,2024-02-02T21:05:00Z,4.5\n"


class Ended(NamedTuple):
    code: int
    out: str
    err: str


Call = Callable[..., Ended]


def declaration(**changes: Any) -> dict[str, Any]:
    plain = {
        "path": "prices.csv",
        "stream": "bars/1d",
        "entity": {"column": "id"},
        "event_time": {"column": "t", "stamp": "instant"},
        "available_at": {"column": "known"},
        "values": {"close": "close"},
    }
    return plain | changes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a source and its file."""
    (tmp_path / "prices.csv").write_text(PRICES)
    (tmp_path / "prices.yaml").write_text(yaml.safe_dump(declaration()))
    return tmp_path


@pytest.fixture
def infoset(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Call:
    """Call the command line in this process."""

    def call(*arguments: object) -> Ended:
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["infoset", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        code = end.value.code
        return Ended(code if isinstance(code, int) else 0, *capsys.readouterr())

    return call


def cells(out: str) -> list[list[str]]:
    """Return the rows of the printed tables."""
    lines = [line for line in out.splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]


def test_without_a_store_the_account_is_printed_and_nothing_is_written(
    infoset: Call, folder: Path
) -> None:
    before = files_of(folder)
    ended = infoset("ingest", folder / "prices.yaml")
    assert (ended.code, ended.err) == (0, "")
    assert cells(ended.out) == [
        ["bars/1d", "5", "2", "0", "1", "2"],
        ["prices.csv", "bars/1d", "3", "available_at", "missing"],
        ["prices.csv", "bars/1d", "4", "close", "no value"],
    ]
    assert "Nothing was stored: give a store with --into." in ended.out
    assert files_of(folder) == before


def test_an_ingest_tells_every_row_and_a_second_one_that_nothing_is_new(
    infoset: Call, folder: Path
) -> None:
    call = ("ingest", folder / "prices.yaml", "--into", folder / "store")
    first = infoset(*call)
    assert first.code == 0
    assert cells(first.out)[0] == ["bars/1d", "5", "2", "0", "1", "2"]
    assert f"Ingest 1 of {folder / 'store'}: 2 new rows." in first.out
    before = files_of(folder / "store")
    second = infoset(*call)
    assert cells(second.out)[0] == ["bars/1d", "5", "0", "2", "1", "2"]
    assert "Nothing was stored: ingest 1 of" in second.out
    assert files_of(folder / "store") == before


def test_a_longer_delivery_stores_its_new_rows_alone(
    infoset: Call, folder: Path
) -> None:
    call = ("ingest", folder / "prices.yaml", "--into", folder / "store", "--json")
    infoset(*call)
    (folder / "prices.csv").write_text(MORE)
    told = json.loads(infoset(*call).out)
    assert told["ingest"] == 2
    assert told["is_new"]
    assert told["streams"] == [
        {
            "stream": "bars/1d",
            "read": 6,
            "stored": 1,
            "already_stored": 2,
            "duplicates": 1,
            "quarantined": 2,
        }
    ]
    assert told["quarantine"][0] == {
        "source": "prices.csv",
        "stream": "bars/1d",
        "row": 3,
        "column": "available_at",
        "reason": "missing",
    }
    assert len(Store.open(folder / "store").log()) == 3


def test_json_without_a_store_speaks_of_usable_rows(
    infoset: Call, folder: Path
) -> None:
    told = json.loads(infoset("ingest", folder / "prices.yaml", "--json").out)
    assert (told["store"], told["ingest"], told["is_new"]) == (None, None, False)
    assert told["streams"][0]["usable"] == 2
    assert "stored" not in told["streams"][0]


def test_rows_are_accounted_for_by_stream_over_all_sources(folder: Path) -> None:
    again = (folder / "prices.csv").read_text()
    (folder / "again.csv").write_text(again)
    sources = [
        declaration(stream="bars/{id}"),
        declaration(stream="bars/{id}", path="again.csv"),
    ]
    (folder / "both.yaml").write_text(yaml.safe_dump({"sources": sources}))
    done = ingest(folder / "both.yaml", into=str(folder / "store"))
    counted = [
        (a.stream, a.read, a.stored, a.duplicates, a.quarantined) for a in done.accounts
    ]
    assert counted == [("bars/A", 6, 2, 4, 0), ("bars/B", 4, 0, 0, 4)]
    [receipt] = Store.open(folder / "store").receipts
    assert [file.name for file in receipt.origin.files] == ["prices.csv", "again.csv"]
    assert receipt.num_duplicates == 4


def test_many_streams_have_a_total_and_only_the_first_quarantined_rows_are_shown(
    infoset: Call, folder: Path
) -> None:
    lost = "".join(f"B,2024-01-{day:02d}T21:00:00Z,,1\n" for day in range(1, 15))
    (folder / "prices.csv").write_text(PRICES + lost)
    many = declaration(stream="bars/{id}")
    (folder / "prices.yaml").write_text(yaml.safe_dump(many))
    ended = infoset("ingest", folder / "prices.yaml")
    rows = cells(ended.out)
    assert rows[2] == ["all", "19", "2", "0", "1", "16"]
    assert len(rows) == 3 + 10
    assert "and 6 more" in ended.out


def test_an_account_that_does_not_add_up_stores_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plant a source that loses a row silently."""

    def losing(*arguments: Any, **options: Any) -> Any:
        log = event_log(*arguments, **options)
        return log.with_table("bars/1d", log.table("bars/1d").slice(1))

    monkeypatch.setattr(ingesting, "event_log", losing)
    with pytest.raises(
        RuntimeError,
        match="rows must add up; got 5 read, 1 usable, 1 duplicates and 2 quarantined",
    ):
        ingest(folder / "prices.yaml", into=str(folder / "store"))
    assert not (folder / "store").exists()


def test_a_file_that_changes_while_it_is_read_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overtaken(*arguments: Any, **options: Any) -> Any:
        log = event_log(*arguments, **options)
        (folder / "prices.csv").write_text(MORE)
        return log

    monkeypatch.setattr(ingesting, "event_log", overtaken)
    with pytest.raises(
        ValueError, match=r"while it is read; got another content of pri"
    ):
        ingest(folder / "prices.yaml", into=str(folder / "store"))
    assert not (folder / "store").exists()


def test_a_declared_change_is_noticed_to_be_left_to_the_experiment(
    folder: Path,
) -> None:
    change = declaration(change={"column": "close", "kind": "log"})
    (folder / "prices.yaml").write_text(yaml.safe_dump(change))
    [notice] = ingest(folder / "prices.yaml").notices
    assert notice.startswith("`change` of bars/1d is not stored: declare it again")


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a wrong setting": (
        declaration(event_time={"column": "t", "stamp": "now"}),
        "prices.yaml: source.event_time must be a mapping whose `stamp` is",
    ),
    "an unknown key": (
        declaration(entitty="A"),
        "prices.yaml: source has no key 'entitty'. Did you mean 'entity'?",
    ),
    "two wrong settings": (
        {"sources": [declaration(scheduled=7), declaration(values=3)]},
        "sources.0.scheduled must be true or false; got 7.\n  sources.1.values must be",
    ),
    "no source": ({"sources": []}, "prices.yaml: sources must not be empty; got []."),
    "a key beside the sources": (
        {"sources": [declaration()], "name": "x"},
        "prices.yaml: the file has no key 'name'. Known keys: sources.",
    ),
    "an unknown preset": (
        {"preset": "stor", "path": "x"},
        "got 'stor'. Did you mean 'store'?",
    ),
    "a missing file": (declaration(path="price.csv"), "Did you mean 'prices.csv'"),
    "a wrong cell": (
        declaration(values={"close": "id"}),
        "values.close must be numeric; got 'A' in row 0 of prices.csv (column 'id')",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_ends_with_code_2_and_nothing_half_written(
    infoset: Call, folder: Path, name: str
) -> None:
    content, message = REFUSED[name]
    (folder / "prices.yaml").write_text(yaml.safe_dump(content))
    before = files_of(folder)
    ended = infoset("ingest", folder / "prices.yaml", "--into", folder / "store")
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert files_of(folder) == before


def test_a_contradiction_of_the_store_ends_with_code_2_and_stores_nothing(
    infoset: Call, folder: Path
) -> None:
    call = ("ingest", folder / "prices.yaml", "--into", folder / "store")
    infoset(*call)
    before = files_of(folder / "store")
    (folder / "prices.csv").write_text(MORE.replace("Z,2.5", "Z,2.6"))
    ended = infoset(*call)
    assert ended.code == 2
    assert "got close 2.6 for (entity A, event_time 2024-02-02 21:00:00" in ended.err
    assert "stored as close 2.5 by ingest 1 (1 such rows)" in ended.err
    assert files_of(folder / "store") == before


def test_a_source_can_be_stored_in_an_object_store(folder: Path) -> None:
    with object_store("ingest") as uri:
        done = ingest(folder / "prices.yaml", into=uri)
        assert done.result == "Ingest 1 of s3://ingest/store: 2 new rows."
        again = ingest(folder / "prices.yaml", into=uri)
        assert again.result.startswith("Nothing was stored: ingest 1 of s3://ingest")
        source = {"preset": "store", "path": uri, "as_of_ingest": 1}
        (folder / "store.yaml").write_text(yaml.safe_dump(source))
        copied = ingest(folder / "store.yaml", into=str(folder / "copy"))
        assert copied.accounts[0].stored == 2
        [receipt] = Store.open(folder / "copy").receipts
        [file] = receipt.origin.files
        assert file.name == "s3://ingest/store/manifests/00000001.json"


def test_a_copy_of_a_store_holds_the_same_events_and_quarantine(folder: Path) -> None:
    ingest(folder / "prices.yaml", into=str(folder / "store"))
    (folder / "copy.yaml").write_text("{preset: store, path: store}")
    done = ingest(folder / "copy.yaml", into=str(folder / "copy"))
    [account] = done.accounts
    assert (account.read, account.stored, account.quarantined) == (4, 2, 2)
    one, other = (Store.open(folder / name) for name in ("store", "copy"))
    assert other.log().table("bars/1d").equals(one.log().table("bars/1d"))
    assert other.quarantine().equals(one.quarantine())


def experiment(folder: Path, **source: Any) -> tuple[Experiment, Path]:
    content = {
        "name": "stored",
        "sources": [{"preset": "store", "path": "store", **source}],
        "forecast_times": {"kind": "interval", "interval": "1D"},
        "targets": [{"entities": ["A"], "stream": "bars/1d", "column": "close"}],
    }
    (folder / "experiment.yaml").write_text(yaml.safe_dump(content))
    return load_experiment(folder / "experiment.yaml")


def test_an_experiment_reads_a_store_as_it_stood(folder: Path) -> None:
    ingest(folder / "prices.yaml", into=str(folder / "store"))
    (folder / "prices.csv").write_text(MORE)
    ingest(folder / "prices.yaml", into=str(folder / "store"))
    sizes = {}
    for ingest_number in (1, 2, None):
        given, base = experiment(folder, as_of_ingest=ingest_number)
        sizes[ingest_number] = len(event_log(given.sources, base=base))
    assert sizes == {1: 2, 2: 3, None: 3}
    given, base = experiment(folder, streams=["bars/1w"])
    with pytest.raises(
        ValueError, match=r"must be one of bars/1d; got 'bars/1w', which"
    ):
        event_log(given.sources, base=base)
    given, base = experiment(folder, path="nowhere")
    with pytest.raises(ValueError, match=r"a store must hold an ingest; got .*nowhere"):
        event_log(given.sources, base=base)


def test_an_experiments_request_changes_with_the_store_unless_it_is_pinned(
    folder: Path,
) -> None:
    digests: dict[int | None, list[str]] = {1: [], None: []}
    for content in (PRICES, MORE):
        (folder / "prices.csv").write_text(content)
        ingest(folder / "prices.yaml", into=str(folder / "store"))
        for pinned, found in digests.items():
            given, base = experiment(folder, as_of_ingest=pinned)
            found.append(request_digest(given, base))
            [file] = given.sources[0].files(base=base)
            assert file.is_file()
    assert digests[1][0] == digests[1][1]
    assert digests[None][0] != digests[None][1]


def test_the_streams_of_a_store_source_are_written_and_read_as_streams(
    folder: Path,
) -> None:
    ingest(folder / "prices.yaml", into=str(folder / "store"))
    given, base = experiment(folder, streams=["bars/1d"])
    (folder / "again.yaml").write_text(given.to_yaml())
    again, _ = load_experiment(folder / "again.yaml")
    assert again == given
    [source] = again.sources
    log = source.log(base=base)
    assert source.streams(log) == ("bars/1d",)
    assert [source.name, *log.quarantine["source"]] == ["store", *["prices.csv"] * 2]
    with pytest.raises(ValueError, match=r"sources\.0 has no key 'only'\. .*streams"):
        experiment(folder, only=["bars/1d"])


def test_one_declaration_and_several_are_read_alike(folder: Path) -> None:
    one = read_source_file(folder / "prices.yaml")
    (folder / "many.yaml").write_text(yaml.safe_dump({"sources": [declaration()]}))
    assert read_source_file(folder / "many.yaml") == one
    assert json.loads(one.declaration)[0]["scheduled"] is False
