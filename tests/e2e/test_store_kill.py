"""Writers that are killed at any moment: nothing that was acknowledged is ever lost."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from store_logs import files_of, ipc_bytes
from store_writer import NUM_STREAMS, Writers, reported, rows_of

from infoset.data.store import Store, StoreDamagedError

KILLS = 8


@pytest.fixture(scope="module")
def writers() -> Iterator[Writers]:
    with Writers() as writers:
        yield writers


def numbers_in(store: Store) -> set[int]:
    """Return the jobs whose rows a store holds; each must be whole."""
    log = store.log()
    found: list[set[int]] = []
    for stream in log.streams:
        rows = log.table(stream).to_pylist()
        found.append({int(row["value"]) for row in rows if row["entity"] != "shared"})
        assert len(rows) == 1 + sum(len(rows_of(n)) - 1 for n in found[-1])
    assert found == [found[0]] * NUM_STREAMS
    return found[0]


@pytest.mark.slow
def test_a_writer_killed_at_any_step_leaves_all_or_nothing(
    writers: Writers, tmp_path: Path
) -> None:
    """Kill a second ingest before each step that touches the disk."""
    report = tmp_path / "report"
    reference = str(tmp_path / "reference")
    for number in (1, 2):
        assert writers.run(store=reference, report=str(report), number=number) == 0
    steps = reported(report)[-1]["steps"]
    assert steps > 20
    first, job = tmp_path / "first", {"report": str(report)}
    assert writers.run(store=str(first), number=1, **job) == 0
    before = ipc_bytes(Store.open(first).log())
    outcomes = set()
    for step in range(steps):
        place = tmp_path / f"store {step}"
        shutil.copytree(first, place)
        code = writers.run(store=str(place), number=2, die_at=step, **job)
        assert code == -signal.SIGKILL
        store = Store.open(place)
        assert ipc_bytes(store.log(as_of_ingest=1)) == before
        outcomes.add(frozenset(numbers_in(store)))
        assert writers.run(store=str(place), number=2, **job) == 0
        assert numbers_in(Store.open(place)) == {1, 2}
        listed = {p for m in store._ledger.manifests() for p in m.paths}
        assert set(files_of(place)) == listed  # what was left behind is swept
    # The last steps come after the manifest's rename.
    assert outcomes == {frozenset({1}), frozenset({1, 2})}


@pytest.mark.slow
def test_a_first_writer_killed_at_any_step_leaves_a_place_for_the_next(
    writers: Writers, tmp_path: Path
) -> None:
    report = tmp_path / "report"
    writers.run(store=str(tmp_path / "whole"), report=str(report), number=1)
    steps = reported(report)[-1]["steps"]
    for step in range(0, steps, 2):
        place, job = tmp_path / f"store {step}", {"report": str(report)}
        code = writers.run(store=str(place), number=1, die_at=step, **job)
        # A run may take a step or two less than the one that was counted.
        assert code == -signal.SIGKILL or (code == 0 and step >= steps - 2)
        assert writers.run(store=str(place), number=1, **job) == 0
        assert numbers_in(Store.open(place)) == {1}


@pytest.mark.slow
def test_whatever_was_acknowledged_before_a_random_kill_is_there(
    writers: Writers, tmp_path: Path
) -> None:
    """Kill writers at random times; the long form is `make faults`."""
    place, report = tmp_path / "store", tmp_path / "report"
    generator = np.random.default_rng(0)
    job = {"store": str(place), "report": str(report)}
    started = time.perf_counter()
    assert writers.run(number=0, **job) == 0
    usual = time.perf_counter() - started
    for number in range(1, KILLS + 1):
        pid = writers.start(number=number, **job)
        time.sleep(generator.uniform(0, usual))
        os.kill(pid, signal.SIGKILL)
        writers.wait(pid)
        acknowledged = {line["number"] for line in reported(report)}
        assert acknowledged <= numbers_in(Store.open(place))
    for number in range(1, KILLS + 1):
        assert writers.run(number=number, **job) == 0
    assert numbers_in(Store.open(place)) == set(range(KILLS + 1))
    receipts = Store.open(place).receipts
    assert [receipt.ingest for receipt in receipts] == list(range(1, KILLS + 2))


@pytest.mark.slow
def test_a_writer_that_writes_in_place_is_caught(
    writers: Writers, tmp_path: Path
) -> None:
    """Plant a careless writer: half a manifest is left where it is killed."""
    report, damaged = tmp_path / "report", 0
    for step in range(4, 20):
        place, job = tmp_path / f"store {step}", {"report": str(report)}
        code = writers.run(store=str(place), number=1, die_at=step, careless=1, **job)
        if (place / "manifests" / "00000001.json").exists():
            try:
                numbers_in(Store.open(place))
            except StoreDamagedError:
                damaged += 1
        if code == 0:
            break
    assert damaged
