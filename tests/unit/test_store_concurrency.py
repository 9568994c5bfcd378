"""Two writers, a full disk, a lock that is taken away: refused clearly, nothing lost."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from store_logs import (
    files_of,
    ipc_bytes,
    log_of,
    object_store,
    origin,
    parts_of,
    values_of,
)
from store_writer import Writers, reported, rows_of

from infoset.data.store import Store, StoreBusyError, StoreUnwritableError
from infoset.data.store.local_storage import LocalStorage
from infoset.data.store.object_storage import ObjectStorage
from infoset.data.store.places import storage_at

ROW = ("A", "2024-01-10T10:00Z", 1.0)
LATER = ("A", "2024-03-10T10:00Z", 3.0)


@pytest.fixture(scope="module")
def writers() -> Iterator[Writers]:
    with Writers() as writers:
        yield writers


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with object_store("concurrency") as uri:
        yield uri


@pytest.fixture
def objects(bucket: str, tmp_path: Path) -> str:
    """Return a store's URI of its own."""
    path, options = bucket.split("?")
    return f"{path}/{tmp_path.name}?{options}"


def wait_until(holds: Callable[[], object]) -> None:
    until = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.fixture
def holder(writers: Writers, tmp_path: Path) -> Iterator[int]:
    """Start a process that has the lock of `store`."""
    report = tmp_path / "holder"
    pid = writers.start(store=str(tmp_path / "store"), report=str(report), hold=60)
    wait_until(lambda: reported(report))
    yield pid
    os.kill(pid, signal.SIGKILL)
    assert writers.wait(pid) == -signal.SIGKILL


def test_the_second_writer_is_refused_after_its_limit_and_told_who_writes(
    holder: int, tmp_path: Path
) -> None:
    store = Store.open(tmp_path / "store", create=True)
    started = time.monotonic()
    with pytest.raises(
        StoreBusyError,
        match=rf"a store must have one writer at a time; process {holder} on .*, since "
        r".*, writes to .*store \(waited 0\.2 s\)\. Nothing was stored: run again when",
    ):
        store.append(log_of(ROW), origin=origin(), wait_seconds=0.2)
    assert 0.2 <= time.monotonic() - started < 5
    assert files_of(tmp_path / "store") == {}


def test_the_second_writer_goes_on_when_the_first_ends(
    writers: Writers, tmp_path: Path
) -> None:
    place, report = str(tmp_path / "store"), tmp_path / "report"
    first = writers.start(store=place, report=str(report), hold=0.5)
    wait_until(lambda: reported(report))
    receipt = Store.open(place, create=True).append(log_of(ROW), origin=origin())
    assert receipt.ingest == 1
    assert writers.wait(first) == 0


def test_a_killed_writer_holds_no_lock(writers: Writers, tmp_path: Path) -> None:
    place, report = str(tmp_path / "store"), tmp_path / "report"
    first = writers.start(store=place, report=str(report), hold=60)
    wait_until(lambda: reported(report))
    os.kill(first, signal.SIGKILL)
    writers.wait(first)
    store = Store.open(place, create=True)
    assert store.append(log_of(ROW), origin=origin(), wait_seconds=0.0).ingest == 1


def test_writers_that_start_together_all_store_what_they_bring(
    writers: Writers, tmp_path: Path
) -> None:
    place, report = tmp_path / "store", tmp_path / "report"
    numbers = range(1, 7)
    job = {"store": str(place), "report": str(report)}
    started = [writers.start(number=number, **job) for number in numbers]
    assert [writers.wait(pid) for pid in started] == [0] * len(numbers)
    store = Store.open(place)
    assert [receipt.ingest for receipt in store.receipts] == list(numbers)
    acknowledged = {line["ingest"]: line["number"] for line in reported(report)}
    assert sorted(acknowledged.values()) == list(numbers)
    assert set(values_of(store.log(), "s0")) == {0.0, *map(float, numbers)}
    # The row that all of them bring is stored by the first alone.
    fresh = len(rows_of(1)) - 1
    assert [r.stored["s0"] for r in store.receipts] == [fresh + 1, *[fresh] * 5]


def test_a_reader_sees_whole_ingests_while_a_writer_works(
    writers: Writers, tmp_path: Path
) -> None:
    place, report = tmp_path / "store", tmp_path / "report"
    job = {"store": str(place), "report": str(report)}
    writers.run(number=1, **job)
    started = [writers.start(number=number, **job) for number in (2, 3, 4)]
    store = Store.open(place)
    seen: set[int] = set()
    fresh = len(rows_of(1)) - 1
    while len(seen) < 2 or max(seen) < 4:
        log = store.log()
        sizes = {log.table(stream).num_rows for stream in ("s0", "s1")}
        assert len(sizes) == 1
        num_jobs, rest = divmod(sizes.pop() - 1, fresh)
        assert rest == 0
        seen.add(num_jobs)
    assert [writers.wait(pid) for pid in started] == [0, 0, 0]


@pytest.mark.parametrize("too_large", [".lock", "events/", "manifests/"])
def test_a_full_disk_stores_nothing_and_says_so(
    writers: Writers, tmp_path: Path, too_large: str
) -> None:
    """Limit the size of a file, so that the lock, a part or the manifest has no room."""
    place, report = tmp_path / "store", tmp_path / "report"
    job = {"store": str(place), "report": str(report)}
    writers.run(number=1, **job)
    before, log = files_of(place), ipc_bytes(Store.open(place).log())
    sizes = [len(text) for path, text in before.items() if path.startswith(too_large)]
    max_bytes = min(sizes, default=1) - 1  # the lock's file is not among them
    assert writers.run(number=2, max_bytes=max_bytes, **job) == 2
    failure = reported(report)[-1]
    last = too_large == "manifests/"
    assert failure["kind"] == ("OSError" if last else "StoreUnwritableError")
    said = (
        "It is not certain that ingest 2 was" if last else "Nothing of this ingest was"
    )
    assert re.search(
        r"store must be writable and have room; got File too large for "
        rf"{re.escape(too_large)}\S*\. {said} stored: ",
        failure["error"],
    )
    assert ipc_bytes(Store.open(place).log()) == log
    left = files_of(place).keys() - before.keys()
    # Parts stay where the manifest failed: only the next writer knows it did.
    assert not any(path.endswith((".partial", ".json")) for path in left)
    assert writers.run(number=2, **job) == 0
    assert len(Store.open(place).receipts) == 2


def test_parts_are_removed_where_one_of_them_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.open(tmp_path / "store", create=True)
    store.append(log_of(ROW), origin=origin())
    before = files_of(tmp_path / "store")
    calls: list[str] = []
    write = LocalStorage.write

    def fill(self: LocalStorage, path: str, content: bytes) -> None:
        calls.append(path)
        if len(calls) == 3:
            raise OSError("the disk is full")
        write(self, path, content)

    monkeypatch.setattr(LocalStorage, "write", fill)
    many = log_of(*[("A", f"2023-{month:02d}-10T10:00Z", 1.0) for month in range(1, 9)])
    with pytest.raises(OSError, match="the disk is full"):
        store.append(many, origin=origin("many"))
    assert files_of(tmp_path / "store") == before


def test_a_failure_after_the_last_rename_is_told_as_uncertain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.open(tmp_path / "store", create=True)
    publish = LocalStorage.publish

    def unsettled(self: LocalStorage, paths: list[str]) -> None:
        publish(self, paths)
        if paths[0].startswith("manifests/"):
            raise StoreUnwritableError("the disk is gone.")

    with monkeypatch.context() as failing:
        failing.setattr(LocalStorage, "publish", unsettled)
        with pytest.raises(
            OSError, match=r"disk is gone\. It is not certain that ingest 1 was stored"
        ):
            store.append(log_of(ROW), origin=origin())
    assert values_of(store.log()) == [1.0]
    assert not store.append(log_of(ROW), origin=origin()).is_new


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    store = Store.open(tmp_path / "file" / "store", create=True)
    with pytest.raises(
        OSError,
        match=r"store must be writable and have room; got File exists for \.lock",
    ):
        store.append(log_of(ROW), origin=origin())


def test_a_stale_intention_is_named_with_how_to_remove_it(objects: str) -> None:
    storage = storage_at(objects)
    storage.write("intentions/dead.json", b'{"host": "h", "pid": 7, "since": "then"}')
    store = Store.open(objects, create=True)
    with pytest.raises(
        StoreBusyError,
        match=r"one writer at a time; process 7 on h, since then, writes to "
        r"s3://concurrency/store/\S+ \(waited 0 s\)\. Nothing was stored: .* If it "
        r"died, delete the object intentions/dead\.json of the store",
    ):
        store.append(log_of(ROW), origin=origin(), wait_seconds=0.0)
    storage.delete("intentions/dead.json")
    assert store.append(log_of(ROW), origin=origin(), wait_seconds=0.0).ingest == 1
    assert storage.files("intentions") == []


def test_a_writer_of_an_object_store_waits_for_another(objects: str) -> None:
    storage, store = storage_at(objects), Store.open(objects, create=True)
    with storage.locked(wait_seconds=0.0) as held:
        held.require()
        done: list[int] = []
        other = threading.Thread(
            target=lambda: done.append(
                store.append(log_of(ROW), origin=origin(), wait_seconds=60.0).ingest
            )
        )
        other.start()
        time.sleep(1)
        assert done == []
    other.join()
    assert done == [1]


def test_two_writers_of_an_object_store_never_both_go_on(objects: str) -> None:
    """Let both write their intention, then both list: both must step back."""
    storage = storage_at(objects)
    assert isinstance(storage, ObjectStorage)
    meet, went_on = threading.Barrier(2), list[int]()

    class Slow(ObjectStorage):
        def files(self, folder: str) -> list[str]:
            meet.wait()
            found = super().files(folder)
            meet.wait()
            return found

    def write() -> None:
        slow = Slow(storage.filesystem, storage.root, storage.uri)
        try:
            with slow.locked(wait_seconds=0.0):
                went_on.append(1)
        except StoreBusyError:
            pass

    threads = [threading.Thread(target=write) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert went_on == []
    assert storage.files("intentions") == []


def test_a_writer_stops_where_its_intention_was_removed(
    objects: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.open(objects, create=True)
    storage = storage_at(objects)
    publish = ObjectStorage.publish

    def removed(self: ObjectStorage, paths: list[str]) -> None:
        for name in storage.files("intentions"):
            storage.delete(f"intentions/{name}")
        publish(self, paths)

    monkeypatch.setattr(ObjectStorage, "publish", removed)
    with pytest.raises(
        StoreBusyError, match=r"intention must stay .* was removed\. No"
    ):
        store.append(log_of(ROW), origin=origin())
    assert storage.files("manifests") == []


def test_a_manifest_is_never_written_twice(
    objects: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plant a second writer that no lock kept out."""
    store = Store.open(objects, create=True)
    publish = ObjectStorage.publish

    def overtaken(self: ObjectStorage, paths: list[str]) -> None:
        self.write("manifests/00000001.json", b"of another writer")
        publish(self, paths)

    with monkeypatch.context() as second:
        second.setattr(ObjectStorage, "publish", overtaken)
        with pytest.raises(StoreBusyError, match=r"got number 1, which another writer"):
            store.append(log_of(ROW), origin=origin())
    assert storage_at(objects).read("manifests/00000001.json") == b"of another writer"


def test_an_object_store_that_cannot_be_written_is_named(bucket: str) -> None:
    path, options = bucket.split("?")
    missing = path.replace("concurrency", "missing-bucket")
    store = Store.open(f"{missing}?{options.split('&allow')[0]}", create=True)
    with pytest.raises(
        OSError, match=r"missing-bucket/store must be writable; got .* Nothing of"
    ):
        store.append(log_of(ROW), origin=origin())


def test_leftovers_in_an_object_store_are_swept(objects: str) -> None:
    store, storage = Store.open(objects, create=True), storage_at(objects)
    name = f"events/stream=s/month=2024-01/00000001-{'a' * 32}.parquet"
    storage.write(name, b"of a writer that died")
    time.sleep(1.1)  # object stores date to the second
    store.append(log_of(ROW, LATER), origin=origin())
    assert name not in {entry.path for entry in storage.entries()}
    assert values_of(store.log()) == [1.0, 3.0]


def test_one_store_is_read_by_several_threads_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Store.open(tmp_path, create=True)
    for day in range(1, 9):
        row = ("A", f"2024-01-0{day}T10:00Z", float(day))
        writer.append(log_of(row), origin=origin(str(day)))
    read = LocalStorage.read

    def slowly(self: LocalStorage, path: str) -> bytes:
        time.sleep(0.01)  # so that all threads read the manifests at the same time
        return read(self, path)

    monkeypatch.setattr(LocalStorage, "read", slowly)
    store, start = Store(storage_at(tmp_path)), threading.Barrier(4)

    def count(_: int) -> int:
        start.wait()
        return len(store.receipts)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(count, range(4))) == [8] * 4
    assert values_of(store.log()) == [float(day) for day in range(1, 9)]


def test_a_name_that_the_disk_refuses_is_told_as_such(tmp_path: Path) -> None:
    path = f"events/{'x' * 256}/part"
    with pytest.raises(
        StoreUnwritableError, match="have room; got File name too long for events/x"
    ):
        LocalStorage(tmp_path).write(path, b"")


def test_a_lock_is_local_disk_only_for_its_own_store(
    holder: int, tmp_path: Path
) -> None:
    assert holder > 0
    other = Store.open(tmp_path / "other", create=True)
    assert other.append(log_of(ROW), origin=origin(), wait_seconds=0.0).ingest == 1
    assert len(parts_of(tmp_path / "other")) == 1
