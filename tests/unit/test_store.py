"""What a store keeps, how it grows, and what it refuses with which words."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from encoders import CountingEncoder
from store_logs import (
    files_of,
    ipc_bytes,
    log_of,
    object_store,
    origin,
    parts_of,
    values_of,
)

from infoset.data import Change, EventLog, with_change, with_embeddings
from infoset.data.store import Origin, OriginFile, Store, StoreDamagedError
from infoset.data.store.local_storage import LocalStorage

JANUARY = ("A", "2024-01-10T10:00Z", 1.0)
FEBRUARY = ("A", "2024-02-10T10:00Z", 2.0)
MARCH = ("B", "2024-03-10T10:00Z", 3.0)
DAY = pd.Timestamp("2024-01-10T10:00Z")


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with object_store("unit") as uri:
        yield uri


@pytest.fixture(params=["local disk", "object store"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return a place for a store: a folder, then a prefix of a bucket."""
    if request.param == "local disk":
        return str(tmp_path / "store")
    path, options = request.getfixturevalue("bucket").split("?")
    return f"{path}/{tmp_path.name}?{options}"


def stored(place: str | Path, *logs: EventLog) -> Store:
    """Ingest logs one after the other."""
    store = Store.open(place, create=True)
    for number, log in enumerate(logs):
        store.append(log, origin=origin(f"source {number}"))
    return store


def rich_log() -> EventLog:
    """Return numbers and texts, some missing, nanoseconds, and ids above 2**53."""
    clock = pd.Series([DAY, DAY + pd.Timedelta(1, "ns"), DAY])
    frame = pd.DataFrame(
        {
            "entity": ["007", "Ä", "*"],
            "event_time": clock,
            "available_at": clock + pd.Timedelta(7, "ns"),
            "sequence": pd.array([2**53 + 1, pd.NA, -1], dtype="Int64"),
            "price": [1.5, np.nan, -0.0],
            "word": ["a", "", None],
        }
    )
    return EventLog.from_pandas(frame, stream="x", values=["price", "word"])


def test_a_log_comes_back_as_it_was(place: str) -> None:
    log = rich_log().append(log_of(JANUARY, FEBRUARY, stream="macro/CPI, é%"))
    back = stored(place, log).log()
    assert back.streams == log.streams
    for stream in log.streams:
        assert back.table(stream).equals(log.table(stream))
        assert back.table(stream).schema.equals(log.table(stream).schema)


def test_a_stream_without_events_stays_declared_and_scheduled(place: str) -> None:
    log = log_of(stream="calendar", scheduled=True)
    receipt = Store.open(place, create=True).append(log, origin=origin())
    back = Store.open(place).log()
    assert (back.streams, len(back)) == (("calendar",), 0)
    assert back.scheduled == frozenset({"calendar"})
    assert (receipt.ingest, receipt.is_new, receipt.num_stored) == (1, True, 0)


def test_ends_of_validity_come_back_as_dates_and_texts(tmp_path: Path) -> None:
    table = log_of(JANUARY, FEBRUARY).table("s")
    ends = [date(9999, 12, 31), None]
    table = table.append_column("end", pa.array(ends, pa.date32()))
    table = table.append_column("until", pa.array(["9999-12-31", None], pa.string()))
    back = stored(tmp_path / "store", EventLog(tables={"s": table})).log().table("s")
    assert back["end"].to_pylist() == ends
    assert back["until"].to_pylist() == ["9999-12-31", None]
    assert back.equals(table)


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary("int8", "string")])
def test_texts_are_kept_however_they_were_encoded(
    tmp_path: Path, kind: pa.DataType
) -> None:
    table = log_of(JANUARY, FEBRUARY).table("s")
    plain = table.append_column("word", pa.array(["a", None], pa.string()))
    encoded = table.append_column("word", pa.array(["a", None]).cast(kind))
    store = stored(tmp_path / "store", EventLog(tables={"s": encoded}))
    assert store.log().table("s").equals(plain)


def test_files_are_parquet_by_stream_and_month_in_folders_like_hives(
    tmp_path: Path,
) -> None:
    # Availability counts: the last event of January is known in February.
    late = ("A", "2024-01-31T23:30Z", 4.0)
    stored(tmp_path, log_of(JANUARY, late, stream="bars/1d"))
    [january, february] = parts_of(tmp_path)
    folder = tmp_path / "events" / "stream=bars%2F1d"
    assert january.parent == folder / "month=2024-01"
    assert february.parent == folder / "month=2024-02"
    file = pq.ParquetFile(january)
    assert file.metadata.format_version == "2.6"
    assert file.schema_arrow.field("event_time").type == pa.timestamp("ns", tz="UTC")
    assert file.schema_arrow.names == [
        "entity",
        "event_time",
        "available_at",
        "sequence",
        "value",
    ]
    assert "RLE_DICTIONARY" in file.metadata.row_group(0).column(0).encodings


def test_a_late_print_takes_its_place_among_the_revisions(place: str) -> None:
    table = log_of(("A", "2024-01-10T10:00Z", 1.0)).table("s")
    later = table.set_column(
        2,
        table.schema.field("available_at"),
        pa.array([DAY + pd.Timedelta("9D")], pa.timestamp("ns", tz="UTC")),
    ).set_column(5, table.schema.field("value"), pa.array([9.0]))
    store = stored(place, EventLog(tables={"s": later}))
    assert store.log().table("s")["revision"].to_pylist() == [0]
    store.append(EventLog(tables={"s": table}), origin=origin("the first print"))
    back = store.log().table("s")
    assert back["value"].to_pylist() == [1.0, 9.0]
    assert back["revision"].to_pylist() == [0, 1]


def test_the_same_source_again_writes_nothing_and_says_so(tmp_path: Path) -> None:
    store = stored(tmp_path, log_of(JANUARY, FEBRUARY))
    before = files_of(tmp_path)
    receipt = store.append(log_of(JANUARY, FEBRUARY), origin=origin("source 0"))
    assert (receipt.is_new, receipt.ingest) == (False, 1)
    assert (receipt.num_stored, receipt.num_already_stored) == (0, 2)
    assert files_of(tmp_path) == before


def test_the_same_source_again_is_stored_where_it_is_read_otherwise(
    tmp_path: Path,
) -> None:
    store = stored(tmp_path, log_of(JANUARY))
    receipt = store.append(log_of(JANUARY, FEBRUARY), origin=origin("source 0"))
    assert (receipt.is_new, receipt.ingest, receipt.num_stored) == (True, 2, 1)


def test_rows_of_an_overlapping_delivery_are_stored_once(place: str) -> None:
    store = stored(place, log_of(JANUARY, FEBRUARY))
    receipt = store.append(log_of(FEBRUARY, MARCH), origin=origin("next"))
    assert (receipt.stored, receipt.already_stored) == ({"s": 1}, {"s": 1})
    assert values_of(store.log()) == [1.0, 2.0, 3.0]
    again = store.append(log_of(JANUARY, MARCH), origin=origin("third"))
    assert (again.ingest, again.is_new) == (3, True)
    assert (again.stored, again.already_stored) == ({"s": 0}, {"s": 2})
    assert [receipt.ingest for receipt in store.receipts] == [1, 2, 3]


def test_rows_that_differ_in_the_sequence_alone_are_two_rows(tmp_path: Path) -> None:
    def numbered(sequence: int | None, value: float = 1.0) -> EventLog:
        table = log_of(("A", JANUARY[1], value)).table("s")
        cells = pa.array([sequence], pa.int64())
        table = table.set_column(3, table.schema.field("sequence"), cells)
        return EventLog(tables={"s": table})

    store = stored(tmp_path, numbered(None), numbered(0), numbered(2**53 + 1))
    assert [r.num_stored for r in store.receipts] == [1, 1, 1]
    again = store.append(numbered(2**53 + 1), origin=origin("again"))
    assert again.num_already_stored == 1
    with pytest.raises(ValueError, match=r"got value 5\.0 for .*sequence 0\) in"):
        store.append(numbered(0, value=5.0), origin=origin("clash"))


def test_another_value_for_a_stored_event_is_refused_by_key(place: str) -> None:
    store = stored(place, log_of(JANUARY), log_of(FEBRUARY))
    receipts = store.receipts
    clash = log_of(JANUARY, ("A", FEBRUARY[1], 7.5), MARCH)
    with pytest.raises(
        ValueError,
        match=r"one event must have one set of values; got value 7\.5 for \(entity A, "
        r"event_time 2024-02-10 10:00:00\+00:00, available_at 2024-02-10 "
        r"11:00:00\+00:00\) in stream 's', stored as value 2\.0 by ingest 2 \(1 such "
        r"rows\)\. A correction is a row of its own",
    ):
        store.append(clash, origin=origin("clash"))
    assert store.receipts == receipts
    assert values_of(store.log()) == [1.0, 2.0]


def test_what_is_missing_equals_what_is_missing(tmp_path: Path) -> None:
    store = stored(tmp_path, rich_log())
    receipt = store.append(rich_log(), origin=origin("again"))
    assert (receipt.num_stored, receipt.num_already_stored) == (0, 3)
    table = rich_log().table("x")
    words = pa.array(["none"] * 3, pa.string())
    clash = table.set_column(6, table.schema.field("word"), words)
    with pytest.raises(ValueError, match=r"got word 'none' .* stored as word missing"):
        store.append(EventLog(tables={"x": clash}), origin=origin("clash"))


def test_a_store_reads_as_it_stood_at_any_ingest_byte_for_byte(place: str) -> None:
    store = Store.open(place, create=True)
    snapshots: list[bytes] = []
    for log in (log_of(FEBRUARY), log_of(JANUARY), rich_log(), log_of(MARCH)):
        store.append(log, origin=origin(str(len(snapshots))))
        snapshots.append(ipc_bytes(store.log()))
    again = Store.open(place)
    for ingest, snapshot in enumerate(snapshots, start=1):
        assert ipc_bytes(again.log(as_of_ingest=ingest)) == snapshot
    with pytest.raises(ValueError, match=r"ingest must be one of .* \(1 to 4\); got 5"):
        again.log(as_of_ingest=5)


def test_an_ingest_changes_no_file_that_was_there(tmp_path: Path) -> None:
    store = stored(tmp_path, log_of(JANUARY))
    before = files_of(tmp_path)
    store.append(log_of(JANUARY, MARCH), origin=origin("next"))
    after = files_of(tmp_path)
    assert before.items() <= after.items()
    assert len(after) == len(before) + 2  # a month's file and a manifest


def test_months_after_the_bound_are_not_even_read(tmp_path: Path) -> None:
    store = stored(tmp_path, log_of(JANUARY, FEBRUARY, MARCH))
    bound = pd.Timestamp(FEBRUARY[1]) + pd.Timedelta("1h")
    expected = store.log().until(bound)
    [march] = parts_of(tmp_path, "2024-03")
    march.unlink()
    assert ipc_bytes(store.log(until=bound)) == ipc_bytes(expected)
    assert values_of(store.log(until=bound)) == [1.0, 2.0]
    assert values_of(store.log(until=bound - pd.Timedelta(1, "ns"))) == [1.0]
    with pytest.raises(ValueError, match="until must be timezone-aware"):
        store.log(until=pd.Timestamp("2024-02-10"))


def test_months_that_a_delivery_does_not_touch_are_not_read(tmp_path: Path) -> None:
    store = stored(tmp_path, log_of(JANUARY, FEBRUARY), log_of(JANUARY, stream="t"))
    for month in ("2024-01",):
        for path in parts_of(tmp_path, month):
            path.write_bytes(b"damaged")
    receipt = store.append(log_of(FEBRUARY, MARCH), origin=origin("next"))
    assert (receipt.num_stored, receipt.num_already_stored) == (1, 1)


def test_streams_can_be_chosen(place: str) -> None:
    store = stored(place, log_of(JANUARY), log_of(MARCH, stream="t"))
    assert store.log(streams=["t"]).streams == ("t",)
    with pytest.raises(ValueError, match=r"stream must be one of s, t; got 'u', which"):
        store.log(streams=["u"])


def test_a_stream_may_gain_columns_and_old_rows_read_as_missing(place: str) -> None:
    table = log_of(MARCH).table("s")
    wider = table.append_column("volume", pa.array([8.0]))
    wider = wider.append_column("note", pa.array(["n"], pa.string()))
    # In another order: the stream keeps its own.
    names = [*table.column_names[:5], "note", "value", "volume"]
    store = stored(place, log_of(JANUARY), EventLog(tables={"s": wider.select(names)}))
    back = store.log()
    assert back.values_of("s") == ("value", "note", "volume")
    assert back.table("s")["volume"].to_pylist() == [None, 8.0]
    assert back.table("s")["note"].to_pylist() == [None, "n"]
    assert store.log(as_of_ingest=1).values_of("s") == ("value",)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"price": 1.0, "text": "a"},
            r"stream 's' must keep its value columns value \(number\); got price "
            r"\(number\), text \(text\), without 'value'\. Give the column",
        ),
        (
            {"value": "1"},
            r"a column of stream 's' must keep its kind; got 'value' as text after "
            r"number\. Declare the kind as before",
        ),
    ],
)
def test_a_stream_may_not_lose_a_column_or_change_its_kind(
    tmp_path: Path, values: dict[str, object], message: str
) -> None:
    store = stored(tmp_path, log_of(JANUARY))
    frame = pd.DataFrame(
        {"entity": ["A"], "event_time": [DAY], "available_at": [DAY]} | values
    )
    other = EventLog.from_pandas(frame, stream="s", values=list(values))
    before = files_of(tmp_path)
    with pytest.raises(ValueError, match=message):
        store.append(other, origin=origin("other"))
    assert files_of(tmp_path) == before


def test_a_stream_stays_scheduled_or_not(tmp_path: Path) -> None:
    store = stored(tmp_path, log_of(JANUARY))
    with pytest.raises(ValueError, match="scheduled of stream 's' must stay False; go"):
        store.append(log_of(MARCH, scheduled=True), origin=origin("other"))


def test_what_no_store_can_hold_is_refused_before_anything_is_made(
    tmp_path: Path,
) -> None:
    store = Store.open(tmp_path / "store", create=True)
    table = log_of(JANUARY).table("s").append_column("flag", pa.array([True]))
    with pytest.raises(
        TypeError, match=r"must be a number .* got bool in column 'flag'"
    ):
        store.append(EventLog(tables={"s": table}), origin=origin())
    changed = with_change(
        log_of(JANUARY, FEBRUARY), "s", Change(column="value", kind="difference")
    )
    with pytest.raises(
        ValueError, match=r"before changes are derived; got a log .* s\."
    ):
        store.append(changed, origin=origin())
    with pytest.raises(ValueError, match="a log must declare a stream; got none"):
        store.append(EventLog(tables={}), origin=origin())
    assert list(tmp_path.iterdir()) == []


def test_an_encoders_numbers_are_not_stored_without_the_end_of_its_training(
    tmp_path: Path,
) -> None:
    frame = log_of(JANUARY).to_pandas("s").assign(text="a")
    texts = EventLog.from_pandas(frame, stream="s", values=["text"])
    encoder = CountingEncoder(training_cutoff=DAY)
    store = Store.open(tmp_path / "store", create=True)
    with pytest.raises(
        ValueError,
        match=r"must be stored before their texts are encoded; .* in s\. Store the log "
        "with its text",
    ):
        store.append(with_embeddings(texts, "s", encoder), origin=origin())
    assert list(tmp_path.iterdir()) == []


def test_the_name_of_a_stream_must_fit_into_a_folders(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store", create=True)
    with pytest.raises(
        ValueError,
        match=r"name of 255 bytes at most .* got 256 for stream 's{40}\.\.\.'\. Choose",
    ):
        store.append(log_of(JANUARY, stream="s" * 249), origin=origin())
    assert list(tmp_path.iterdir()) == []
    for longest in ("s" * 248, "é" * 41):
        store.append(log_of(JANUARY, stream=longest), origin=origin(longest))
        assert values_of(store.log(), longest) == [1.0]


def test_a_column_that_came_later_cannot_be_filled_in_for_stored_events(
    place: str,
) -> None:
    store = stored(place, log_of(JANUARY))
    wider = log_of(JANUARY).table("s").append_column("volume", pa.array([8.0]))
    with pytest.raises(
        ValueError,
        match=r"got volume 8\.0 for .* stored as volume missing .* give it a stream of "
        r"its own, or deliver it with events that are not stored yet\. Nothing was",
    ):
        store.append(EventLog(tables={"s": wider}), origin=origin("wider"))
    own = EventLog(tables={"s/volume": wider.drop_columns("value")})
    store.append(own, origin=origin("own"))
    assert store.log().table("s/volume")["volume"].to_pylist() == [8.0]


def test_a_store_that_is_not_there_cannot_be_read(place: str) -> None:
    with pytest.raises(
        ValueError, match=r"a store must hold an ingest; got .*, which h"
    ):
        Store.open(place)


def test_a_store_is_not_made_among_other_files(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(
        ValueError, match=r"in an empty or a new folder; got thesis\.tex"
    ):
        stored(tmp_path, log_of(JANUARY))


def test_a_uri_must_name_an_object_store() -> None:
    with pytest.raises(
        ValueError, match=r"the URI of an object store .*; got ftp://host/x: .*ftp"
    ):
        Store.open("ftp://host/x")
    with pytest.raises(
        ValueError, match=r"got mock://x, which is mock\. Choose another"
    ):
        Store.open("mock://x")


def test_a_uri_with_a_secret_is_refused_without_repeating_it() -> None:
    with pytest.raises(
        ValueError, match=r"must not hold a secret, .* got one for b"
    ) as e:
        Store.open("s3://key:hush@bucket/store")
    assert "hush" not in str(e.value)


def test_a_file_uri_is_a_folder(tmp_path: Path) -> None:
    store = stored(f"file://{tmp_path}/my%20store", log_of(JANUARY))
    assert store.name == f"{tmp_path}/my store"
    assert values_of(Store.open(tmp_path / "my store").log()) == [1.0]


def damage(folder: Path, kind: str) -> str:
    """Damage the second of three ingests; return the path that must be named."""
    [part] = folder.glob("events/*/*/00000002-*.parquet")
    manifest = folder / "manifests" / "00000002.json"
    match kind:
        case "an altered part":
            content = bytearray(part.read_bytes())
            content[len(content) // 2] ^= 1
            part.write_bytes(content)
        case "a missing part":
            part.unlink()
        case "a cut manifest":
            manifest.write_bytes(manifest.read_bytes()[:-9])
        case "an altered manifest":
            text = manifest.read_text().replace('"num_rows":1', '"num_rows":2')
            manifest.write_text(text)
        case "a missing manifest":
            manifest.unlink()
        case "a manifest of another store":
            other = folder.parent / "other"
            stored(other, log_of(MARCH), log_of(JANUARY))
            manifest.write_bytes((other / "manifests" / "00000002.json").read_bytes())
    found = part if "part" in kind else manifest
    return found.relative_to(folder).as_posix()


@pytest.mark.parametrize(
    ("kind", "got"),
    [
        ("an altered part", "a content of another digest"),
        ("a missing part", "no such file"),
        ("a cut manifest", "something that cannot be read"),
        ("an altered manifest", "a content of another digest"),
        ("a missing manifest", "no such file"),
        ("a manifest of another store", "a manifest that does not follow the one bef"),
    ],
)
def test_damage_is_named_and_what_was_before_it_can_be_read(
    tmp_path: Path, kind: str, got: str
) -> None:
    folder = tmp_path / "store"
    first = ipc_bytes(stored(folder, log_of(JANUARY)).log())
    stored(folder, log_of(JANUARY), log_of(FEBRUARY), log_of(MARCH))
    named = damage(folder, kind)
    pattern = rf"{re.escape(named)} of .*store must be as it was written; got {got}"
    with pytest.raises(StoreDamagedError, match=pattern):
        Store.open(folder).log()
    fresh = Store(LocalStorage(folder))
    assert ipc_bytes(fresh.log(as_of_ingest=1)) == first


def test_a_later_format_is_refused(tmp_path: Path, monkeypatch) -> None:
    with monkeypatch.context() as later:
        later.setattr("infoset.data.store.manifests._FORMAT", 2)
        stored(tmp_path, log_of(JANUARY))
    with pytest.raises(
        ValueError, match="a store must have format 1; got 2 in manifest"
    ):
        Store.open(tmp_path)


def quarantined_log(day: str) -> EventLog:
    frame = pd.DataFrame(
        {
            "entity": ["A", "A", None],
            "event_time": [pd.Timestamp(day, tz="UTC")] * 3,
            "available_at": [pd.Timestamp(day, tz="UTC"), pd.NaT, DAY],
            "value": [1.0, 2.0, 3.0],
        }
    )
    log = EventLog.from_pandas(frame, stream="s", values=["value"])
    return replace(
        log,
        quarantine=log.quarantine.assign(source=f"{day}.csv"),
        notices=(f"odd {day}", "odd"),
    )


def test_rows_that_are_never_used_are_kept_by_ingest(place: str) -> None:
    store = stored(place, quarantined_log("2024-01-01"), log_of(MARCH, stream="t"))
    store.append(quarantined_log("2024-02-01"), origin=origin("next"))
    listed = store.quarantine()
    assert list(listed) == ["ingest", "stream", "row", "column", "reason", "source"]
    assert listed["ingest"].to_list() == [1, 1, 3, 3]
    assert store.quarantine(2).empty
    assert store.quarantine(3)["source"].to_list() == ["2024-02-01.csv"] * 2
    assert store.receipts[0].quarantined == {"s": 2}
    log = store.log()
    pd.testing.assert_frame_equal(log.quarantine, listed)
    assert log.notices == ("odd 2024-01-01", "odd", "odd 2024-02-01")
    assert len(store.log(as_of_ingest=1).quarantine) == 2
    assert store.log(streams=["t"]).quarantine.empty


def test_a_stream_with_faulty_rows_only_is_in_the_quarantine(place: str) -> None:
    faulty = quarantined_log("2024-01-01").quarantine.assign(stream="broken")
    store = stored(place, replace(log_of(JANUARY), quarantine=faulty))
    assert store.log().quarantine["stream"].to_list() == ["broken"] * 2
    assert store.log(streams=["s"]).quarantine.empty


def test_rows_of_a_frame_have_no_file(tmp_path: Path) -> None:
    log = replace(
        log_of(JANUARY),
        quarantine=quarantined_log("2024-01-01").quarantine.drop(columns="source"),
    )
    listed = stored(tmp_path, log).quarantine()
    assert listed["row"].to_list() == [2, 1]
    assert listed["source"].isna().all()


def test_receipts_say_what_was_read_and_when(place: str) -> None:
    given = Origin(
        declaration='{"path":"é.csv"}',
        files=(OriginFile("é.csv", "0" * 64),),
        time=datetime.fromisoformat("2024-05-01T12:00:00+02:00"),
    )
    twice = replace(log_of(JANUARY), num_duplicates=3)
    receipt = Store.open(place, create=True).append(twice, origin=given)
    [kept] = Store.open(place).receipts
    assert kept == receipt
    assert kept.origin.files[0].name == "é.csv"
    assert kept.origin.source == given.source
    assert kept.num_duplicates == 3
    with pytest.raises(ValueError, match="time of an origin must be timezone-aware"):
        Origin("x", time=datetime(2024, 1, 1))


def test_leftovers_are_ignored_by_readers_and_swept_by_the_next_writer(
    tmp_path: Path,
) -> None:
    store = stored(tmp_path, log_of(JANUARY))
    before, log = files_of(tmp_path), ipc_bytes(store.log())
    [part] = parts_of(tmp_path)
    name = f"00000002-{'a' * 32}.parquet"
    leftovers = [
        part.with_name(name),
        part.with_name(f"{name}.partial"),
        tmp_path / "manifests" / "00000002.json.partial",
        tmp_path / "quarantine" / name,
    ]
    kept = [part.with_name("mine.parquet"), tmp_path / "README"]
    (tmp_path / "quarantine").mkdir()
    for path in (*leftovers, *kept):
        path.write_bytes(b"half")
    assert ipc_bytes(Store.open(tmp_path).log()) == log
    newer = part.with_name(f"00000002-{'b' * 32}.parquet")
    newer.write_bytes(b"of a writer that is still at work")
    os.utime(newer, (2**32, 2**32))
    store.append(log_of(JANUARY), origin=origin("source 0"))
    left = {path.relative_to(tmp_path).as_posix() for path in (*kept, newer)}
    assert files_of(tmp_path).keys() == before.keys() | left


def test_the_digest_of_the_newest_manifest_changes_with_every_ingest(
    tmp_path: Path,
) -> None:
    store = Store.open(tmp_path, create=True)
    with pytest.raises(ValueError, match="a store must hold an ingest; got none in"):
        store.manifest()
    stored(tmp_path, log_of(JANUARY), log_of(FEBRUARY))
    assert store.manifest()[0] == "manifests/00000002.json"
    assert store.manifest(1)[0] == "manifests/00000001.json"
    assert store.manifest()[1] != store.manifest(1)[1]
