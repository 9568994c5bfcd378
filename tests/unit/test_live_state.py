"""The journal and the folder of a live stream: what survives, and what is refused."""

import os

import pytest
import torch
from live_feeds import damaged

from infoset.pipeline.live.feeds import LineFeed, Position, rest_of
from infoset.pipeline.live.journal import Journal, Kind, Record, read_journal
from infoset.pipeline.live.state_folder import StateFolder
from infoset.pipeline.live.stop_signal import StopSignal

RECORDS = [
    Record(Kind.NEW_FEED, b"pipe"),
    Record(Kind.LINE, b'{"a": 1}'),
    Record(Kind.COMPLETE),
    Record(Kind.LINE, b""),
]


def test_records_come_back_in_their_order(tmp_path):
    with Journal(tmp_path / "j") as journal:
        journal.append(RECORDS[:2])
        journal.append(RECORDS[2:], durable=False)
    assert list(read_journal(tmp_path / "j")) == RECORDS


def test_a_record_that_was_cut_off_is_dropped_and_written_over(tmp_path):
    """At every length: what is whole stays, and more can be added."""
    path = tmp_path / "j"
    with Journal(path) as journal:
        journal.append(RECORDS)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        kept = list(read_journal(path))
        assert kept == RECORDS[: len(kept)]
        assert len(kept) < len(RECORDS)
        with Journal(path) as journal:
            journal.append(RECORDS[-1:])
        assert list(read_journal(path)) == [*kept, RECORDS[-1]]


def test_a_record_that_was_changed_is_refused(tmp_path):
    path = tmp_path / "j"
    with Journal(path) as journal:
        journal.append(RECORDS)
    whole = path.read_bytes()
    for place in range(len(whole)):
        damaged(path, place)
        with pytest.raises(
            ValueError, match=r"must be as it was written; .* at byte \d+"
        ):
            Journal(path)
        path.write_bytes(whole)


def test_a_record_that_a_power_cut_left_as_zeros_is_dropped(tmp_path):
    """The file has its length already; what was not written reads as zeros."""
    path = tmp_path / "j"
    with Journal(path) as journal:
        journal.append(RECORDS)
    end = path.stat().st_size
    with Journal(path) as journal:
        journal.append([Record(Kind.LINE, b"a line of some length"), *RECORDS])
    whole = path.read_bytes()
    head = 13
    for written in (end, end + 2, end + head, end + head + 4):
        path.write_bytes(whole[:written].ljust(len(whole), b"\0"))
        assert list(read_journal(path)) == RECORDS
        with Journal(path) as journal:
            journal.append(RECORDS[-1:])
        assert list(read_journal(path)) == [*RECORDS, RECORDS[-1]]
    # Zeros in the middle are no power cut.
    path.write_bytes(whole[:end] + bytes(20) + whole[end + 20 :])
    with pytest.raises(ValueError, match=f"changed at byte {end}"):
        Journal(path)


def numbers(value):
    return {"format": 1, "value": value}, {"x": torch.tensor([value])}


def test_a_folder_holds_the_newest_snapshot_and_the_journal_after_it(tmp_path):
    with StateFolder.locked(tmp_path / "state") as folder:
        assert folder.is_new
        folder.begin(*numbers(1))
        with folder.opened() as journal:
            journal.append(RECORDS)
    with StateFolder.locked(tmp_path / "state") as folder:
        assert folder.read()[0]["value"] == 1
        assert list(folder.records()) == RECORDS
        folder.begin(*numbers(2))
        assert folder.read()[1]["x"].tolist() == [2]
        assert list(folder.records()) == []
        assert {path.name for path in folder.folder.iterdir()} == {
            ".lock",
            "snapshot-00000002.safetensors",
        }


@pytest.mark.parametrize("step", range(8))
def test_a_crash_at_any_step_of_a_snapshot_loses_nothing(tmp_path, monkeypatch, step):
    """Stop before each change of the folder; the old state or the new one is there."""

    class Crash(BaseException):
        pass

    done: list[object] = []

    def stopping(original):
        def called(*arguments, **options):
            if len(done) == step:
                raise Crash
            done.append(original)
            return original(*arguments, **options)

        return called

    with StateFolder.locked(tmp_path / "state") as folder:
        folder.begin(*numbers(1))
        with folder.opened() as journal:
            journal.append(RECORDS)
        with monkeypatch.context() as patch:
            for name in ("fsync", "rename", "replace", "unlink"):
                patch.setattr(os, name, stopping(getattr(os, name)))
            try:
                folder.begin(*numbers(2))
            except Crash:
                pass
            else:
                assert step >= 5
    with StateFolder.locked(tmp_path / "state") as folder:
        value = folder.read()[0]["value"]
        assert list(folder.records()) == (RECORDS if value == 1 else [])
        folder.begin(*numbers(3))
        assert len(list(folder.folder.glob("snapshot-*"))) == 1
        assert not list(folder.folder.glob("*.partial"))


def test_two_streams_do_not_share_a_folder(tmp_path):
    with (
        StateFolder.locked(tmp_path),
        pytest.raises(
            ValueError, match=r"must be free; another stream works in .*--state"
        ),
        StateFolder.locked(tmp_path),
    ):
        pass


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(ValueError, match="--state must name a writable folder; got"),
        StateFolder.locked(tmp_path / "file"),
    ):
        pass


def opened(path, stop):
    return LineFeed(os.open(path, os.O_RDONLY), stop)


def all_lines(feed):
    lines = []
    while batch := feed.read(None):
        lines += batch
    return lines


def test_lines_come_whole_whatever_the_reads_are(tmp_path):
    content = [b"a" * n for n in (0, 1, 70_000, 3, 200_000)]
    for end in (b"", b"\n"):
        (tmp_path / "lines").write_bytes(b"\n".join(content) + end)
        with StopSignal() as stop:
            assert all_lines(opened(tmp_path / "lines", stop)) == content


def test_a_line_without_an_end_takes_no_memory_and_counts_once(tmp_path):
    (tmp_path / "lines").write_bytes(b"a\n" + b"x" * 5_000_000 + b"\nb\n")
    with StopSignal() as stop:
        feed = opened(tmp_path / "lines", stop)
        lines = all_lines(feed)
    assert [lines[0], lines[2]] == [b"a", b"b"]
    assert len(lines[1]) == (1 << 20) + 1


def test_silence_and_a_signal_give_no_lines():
    read, write = os.pipe()
    with StopSignal() as stop:
        feed = LineFeed(read, stop)
        assert feed.read(0.01) == []
        os.write(write, b"half a li")
        assert feed.read(0.01) == []
        os.write(write, b"ne\n")
        assert feed.read(None) == [b"half a line"]
        os.kill(os.getpid(), 15)
        assert feed.read(None) == []
        assert stop.received == 15


def test_a_feed_goes_on_only_after_the_very_lines_that_were_taken(tmp_path):
    place = Position()
    for one in (b"a", b"b"):
        place = place.after(one)
    with StopSignal() as stop:

        def rest(content):
            (tmp_path / "lines").write_bytes(content)
            return rest_of(lambda: opened(tmp_path / "lines", stop), place)

        assert all_lines(rest(b"a\nb\nc\nd\n")) == [b"c", b"d"]
        assert all_lines(rest(b"a\nb\n")) == []
        assert rest(b"a\nc\nb\n") is None
        assert rest(b"a\n") is None
        assert rest(b"") is None
