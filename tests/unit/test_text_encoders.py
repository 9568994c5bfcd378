"""Texts as numbers of an encoder: kept on disk, checked, and dated."""

import pickle
from collections.abc import Sequence
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from encoders import CentringEncoder, CountingEncoder

from infoset.data import (
    EventLog,
    LookAheadError,
    TextEncoder,
    event_arrays,
    with_embeddings,
)
from infoset.data.embeddings import embeddings
from infoset.data.encoded_streams import encodings
from infoset.data.sources.declaration import TextColumn
from infoset.data.text_encoders import checked_encoder, find_encoder

TEXTS = ("rates rise", "rates fall", "rates rise", "no change")
CUTOFF = pd.Timestamp("2024-01-03", tz="UTC")


def news(texts: Sequence[str | None] = TEXTS) -> EventLog:
    days = pd.date_range("2024-01-01", periods=len(texts), tz="UTC")
    frame = pd.DataFrame(
        {
            "entity": "*",
            "event_time": days,
            "available_at": days,
            "text": pd.array(list(texts), dtype="str"),
            "pages": 1.0,
        }
    )
    return EventLog.from_pandas(frame, stream="news", values=["text", "pages"])


# Embeddings on disk


def test_each_text_is_encoded_once_and_a_second_run_encodes_nothing(
    tmp_path: Path,
) -> None:
    first, second = CountingEncoder(), CountingEncoder()
    numbers = embeddings(TEXTS, first, folder=tmp_path)
    # Three different texts; each once more, and the first and last alone, as a check.
    assert len(first.asked) == 3 + 3 + 2
    again = embeddings(TEXTS[::-1], second, folder=tmp_path)
    assert second.asked == []
    np.testing.assert_array_equal(again[::-1], numbers)
    np.testing.assert_array_equal(numbers[0], numbers[2])


def test_only_a_new_text_is_encoded(tmp_path: Path) -> None:
    embeddings(TEXTS, CountingEncoder(), folder=tmp_path)
    later = CountingEncoder()
    embeddings([*TEXTS, "a new one"], later, folder=tmp_path)
    assert later.asked == ["a new one"]


def test_another_digest_shares_nothing(tmp_path: Path) -> None:
    embeddings(TEXTS, CountingEncoder(), folder=tmp_path)
    other = CountingEncoder(digest="tiny/2: ../weights")
    embeddings(TEXTS, other, folder=tmp_path)
    assert len(set(other.asked)) == 3
    assert len(list(tmp_path.glob("*/*.parquet"))) == 2


def test_without_a_folder_nothing_is_kept(tmp_path: Path) -> None:
    embeddings(TEXTS, CountingEncoder())
    again = CountingEncoder()
    embeddings(TEXTS, again)
    assert set(again.asked) == set(TEXTS)
    assert not list(tmp_path.iterdir())


def test_a_damaged_file_counts_as_absent_and_is_written_anew(tmp_path: Path) -> None:
    whole = embeddings(TEXTS, CountingEncoder(), folder=tmp_path)
    [path] = tmp_path.glob("*/*.parquet")
    for content in (b"PAR1", changed_parquet(path)):
        path.write_bytes(content)
        again = CountingEncoder()
        np.testing.assert_array_equal(embeddings(TEXTS, again, folder=tmp_path), whole)
        assert set(again.asked) == set(TEXTS)
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def changed_parquet(path: Path) -> bytes:
    """Return a file whose numbers were changed and whose digest was not."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    table = pq.read_table(path)
    column = table["embedding"].combine_chunks()
    numbers = column.flatten().to_numpy() + 1
    changed = pa.FixedSizeListArray.from_arrays(pa.array(numbers), 3)
    other = table.set_column(1, "embedding", changed)
    target = path.with_name("changed")
    pq.write_table(other.replace_schema_metadata(table.schema.metadata), target)
    content = target.read_bytes()
    target.unlink()
    return content


def test_what_was_encoded_before_an_interruption_is_kept(tmp_path: Path) -> None:
    texts = [f"text {k}" for k in range(1500)]

    class Interrupted(CountingEncoder):
        def encode(self, texts):
            if len(self.asked) > 2 * 1024 + 2:
                raise KeyboardInterrupt
            return super().encode(texts)

    with pytest.raises(KeyboardInterrupt):
        embeddings(texts, Interrupted(), folder=tmp_path)
    again = CountingEncoder()
    embeddings(texts, again, folder=tmp_path)
    assert len(set(again.asked)) == 1500 - 1024
    assert not list(tmp_path.rglob("*.partial*"))


def test_a_digest_that_did_not_change_with_the_numbers_is_refused(
    tmp_path: Path,
) -> None:
    embeddings(TEXTS, CountingEncoder(), folder=tmp_path)
    with pytest.raises(
        ValueError, match="digest must change with its numbers; got 3 of"
    ):
        embeddings(TEXTS, CountingEncoder(num_features=4), folder=tmp_path)


# What an encoder must do


def test_an_encoder_that_learns_from_the_texts_it_is_given_looks_ahead() -> None:
    with pytest.raises(
        LookAheadError,
        match="encoder 'tiny' must give a text the same numbers whatever is beside it",
    ):
        embeddings(TEXTS, CentringEncoder())


class NextTextEncoder(CountingEncoder):
    """Reads the text after each, but not at the ends of a batch."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        numbers = super().encode(texts)
        numbers[1:-1] += numbers[2:].copy()
        return numbers


class SmallBatchEncoder(CountingEncoder):
    """Centres the texts of each small batch of its own, but the first and last."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        numbers = super().encode(texts)
        for begin in range(32, len(texts) - 32, 32):
            numbers[begin : begin + 32] -= numbers[begin : begin + 32].mean(axis=0)
        return numbers


@pytest.mark.parametrize("encoder", [NextTextEncoder(), SmallBatchEncoder()])
def test_an_encoder_that_reads_other_texts_in_the_middle_of_a_batch_looks_ahead(
    encoder: CountingEncoder,
) -> None:
    with pytest.raises(LookAheadError, match=r"got a change of .* for 'text \d+'"):
        embeddings([f"text {k}" for k in range(1024)], encoder)


def test_an_encoder_whose_rounding_depends_on_the_batch_is_accepted() -> None:
    class Padded(CountingEncoder):
        def encode(self, texts):
            return super().encode(texts) * np.float32(1 + 1e-6 * len(texts))

    texts = [f"text {k}" for k in range(100)]
    assert np.isfinite(embeddings(texts, Padded())).all()


@pytest.mark.parametrize(
    ("numbers", "kind", "message"),
    [
        (
            np.zeros((3, 2)),
            ValueError,
            r"array of shape \(3, 3\) for 3 texts; got \(3, 2",
        ),
        (np.zeros((3, 3), dtype=int), TypeError, "must give floats of 64 bits at most"),
        (np.full((3, 3), np.nan), ValueError, "finite numbers; got others for '"),
    ],
)
def test_wrong_numbers_are_refused(
    numbers: np.ndarray, kind: type[Exception], message: str
) -> None:
    class Wrong(CountingEncoder):
        def encode(self, texts):
            return numbers[: len(texts)]

    with pytest.raises(kind, match=message):
        embeddings(TEXTS, Wrong())


@pytest.mark.parametrize(
    ("encoder", "kind", "message"),
    [
        (
            object(),
            TypeError,
            "'tiny' must have name, digest, training_cutoff, num_fea",
        ),
        (CountingEncoder(name="big"), ValueError, "own name; got 'big' as 'tiny'"),
        (
            CountingEncoder(digest=""),
            ValueError,
            "digest of encoder 'tiny' must be text",
        ),
        (CountingEncoder(num_features=0), ValueError, "a whole number from 1; got 0"),
        (
            CountingEncoder(training_cutoff=pd.Timestamp("2024-01-01")),
            ValueError,
            "training_cutoff of encoder 'tiny' must be a timezone-aware Timestamp, or No",
        ),
    ],
)
def test_an_encoder_that_says_too_little_is_refused(
    encoder: object, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        checked_encoder(encoder, "tiny")


def test_an_unknown_encoder_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        ValueError,
        match=r"installed under 'infoset.encoders' \(tiny\); got 'tony'",
    ):
        find_encoder("tony", {"tiny": CountingEncoder()})


def test_an_installed_package_offers_an_encoder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    point = EntryPoint("offered", "encoders:installed", "infoset.encoders")

    def offered(*, group: str) -> EntryPoints:
        return EntryPoints([point]).select(group=group)

    monkeypatch.setattr("infoset.data.text_encoders.entry_points", offered)
    found = find_encoder("offered", {})
    assert (found.name, found.digest) == ("offered", "offered-1")
    assert isinstance(found, TextEncoder)


# Streams


def test_texts_become_numbers_and_the_log_says_whose(tmp_path: Path) -> None:
    encoder = CountingEncoder(training_cutoff=CUTOFF.tz_convert("America/New_York"))
    log = with_embeddings(news(), "news", encoder, folder=tmp_path)
    assert log.values_of("news") == ("pages", "text_00", "text_01", "text_02")
    numbers = log.to_pandas("news")[["text_00", "text_01", "text_02"]].to_numpy()
    np.testing.assert_array_equal(numbers, encoder.encode(TEXTS).astype(np.float64))
    made = encodings(log)["news"]
    assert (made.name, made.digest, made.training_cutoff) == ("tiny", "tiny-1", CUTOFF)


def test_a_missing_text_has_no_numbers_and_is_not_encoded() -> None:
    encoder = CountingEncoder()
    log = with_embeddings(news(["up", None, ""]), "news", encoder, keep_text=True)
    frame = log.to_pandas("news")
    assert frame["text_00"].isna().tolist() == [False, True, False]
    assert frame["text"].isna().tolist() == [False, True, False]
    assert set(encoder.asked) == {"up", ""}
    assert np.isnan(event_arrays(log).values[1, 1:]).all()


def test_what_a_log_says_survives_cutting_and_sending_it_to_a_worker() -> None:
    log = with_embeddings(news(), "news", CountingEncoder(training_cutoff=CUTOFF))
    for other in (log.until(CUTOFF), pickle.loads(pickle.dumps(log))):
        assert encodings(other) == encodings(log)
    assert encodings(news()) == {}


@pytest.mark.parametrize(
    ("boundary", "expected"),
    [("inclusive", [True, False, False]), ("strict", [True, True, False])],
)
def test_training_is_dated_like_an_event_of_its_last_instant(
    boundary: str, expected: list[bool]
) -> None:
    log = with_embeddings(news(), "news", CountingEncoder(training_cutoff=CUTOFF))
    times = CUTOFF.as_unit("ns").value + np.array([-1, 0, 1])
    early = encodings(log)["news"].looks_ahead(times, boundary=boundary)  # type: ignore[arg-type]
    assert early.tolist() == expected


def test_an_encoder_that_learned_nothing_never_looks_ahead() -> None:
    log = with_embeddings(news(), "news", CountingEncoder())
    early = encodings(log)["news"].looks_ahead(np.array([0]), boundary="inclusive")
    assert early.tolist() == [False]


def test_a_stream_without_a_text_or_encoded_twice_is_refused() -> None:
    log = with_embeddings(news(), "news", CountingEncoder(), keep_text=True)
    with pytest.raises(ValueError, match="must not have numbers of its texts already"):
        with_embeddings(log, "news", CountingEncoder(digest="tiny-2"))
    log = with_embeddings(news(), "news", CountingEncoder())
    with pytest.raises(
        ValueError, match="'news' must have a text value named 'text' to"
    ):
        with_embeddings(log, "news", CountingEncoder())


def test_an_encoded_stream_is_not_appended_to() -> None:
    plain = news()
    log = with_embeddings(plain, "news", CountingEncoder(training_cutoff=CUTOFF))
    for first, second in ((log, log), (plain.with_table("news", plain_copy(log)), log)):
        with pytest.raises(
            ValueError,
            match=r"must be appended before their texts are encoded; .* stream 'news'",
        ):
            first.append(second)
    other = EventLog(tables={"other": news().table("news")})
    assert encodings(log.append(other)) == encodings(log)


def plain_copy(log: EventLog) -> pa.Table:
    """Return an encoded stream as if a user had made its numbers."""
    return log.table("news").replace_schema_metadata(None)


# Declarations


@pytest.mark.parametrize(
    ("declared", "got"),
    [
        ({"column": "t"}, "neither"),
        ({"column": "t", "encoder": "x", "hashing": {"num_features": 2}}, "both"),
    ],
)
def test_a_text_becomes_numbers_in_one_way(
    declared: dict[str, object], got: str
) -> None:
    with pytest.raises(ValueError, match=f"or by an `encoder`; got {got}"):
        TextColumn.model_validate(declared)


def test_a_hashed_text_is_written_as_it_always_was() -> None:
    text = TextColumn.model_validate({"column": "t", "hashing": {"num_features": 2}})
    written = {"column": "t", "hashing": {"num_features": 2}, "keep_text": False}
    assert text.model_dump(mode="json") == written
