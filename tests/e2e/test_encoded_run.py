"""A trained encoder of texts in a run: encoded once, and its look-ahead told."""

import json
from pathlib import Path

import pandas as pd
import pytest
import yaml
from encoders import CountingEncoder
from price_runs import news_source, price_experiment, price_source

from infoset.data import EventLog, with_embeddings
from infoset.pipeline import run
from infoset.pipeline.config import Experiment, load_experiment
from infoset.pipeline.ingest import ingest
from infoset.pipeline.known import known_at
from infoset.pipeline.preparation import load_log, prepare
from infoset.pipeline.report import comparison_table, comparison_text

# The test spans hold 20 days of 2 entities; half of them lie before this.
CUTOFF = pd.Timestamp("2024-03-11", tz="UTC")
BEFORE = pd.Timestamp("2024-02-01", tz="UTC")
SOURCES = [price_source(), news_source(encoder="tiny")]


def encoder(cutoff: pd.Timestamp | None = CUTOFF) -> CountingEncoder:
    return CountingEncoder(training_cutoff=cutoff)


def contents(folder: Path, name: str) -> dict[str, object]:
    content = json.loads((folder / name).read_text())
    assert isinstance(content, dict)
    return content


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("encoded")


@pytest.fixture(scope="module", name="finished")
def _finished(folder: Path) -> Path:
    used = encoder()
    path = price_experiment(folder, sources=SOURCES)
    finished = run(path, encoders={"tiny": used})
    assert len(set(used.asked)) == 30
    return finished.folder


@pytest.mark.slow
def test_forecasts_from_before_the_end_of_training_are_marked(finished: Path) -> None:
    forecasts = pd.read_parquet(finished / "forecasts.parquet")
    early = forecasts["forecast_time"] < CUTOFF
    assert forecasts["look_ahead"].tolist() == early.tolist()
    assert 0 < early.sum() < len(early)


@pytest.mark.slow
def test_the_certificate_names_the_encoder_and_does_not_pass(finished: Path) -> None:
    certificate = contents(finished, "certificate.json")
    assert certificate["passed"] is False
    checks = certificate["checks"]
    assert isinstance(checks, list)
    [check] = [c for c in checks if c["name"] == "training of encoder tiny"]
    assert check["detail"].startswith(
        "encoder tiny was trained on texts until 2024-03-11T00:00:00+00:00: 20 of 40 "
        "test forecasts are before it."
    )
    assert (check["num_failures"], check["num_points"]) == (20, 40)
    assert all(c["num_failures"] == 0 for c in checks if c is not check)


@pytest.mark.slow
def test_every_table_of_the_comparison_counts_look_ahead(finished: Path) -> None:
    assert comparison_table(finished)["num_look_ahead"].tolist() == [20, 20]
    assert comparison_text(finished)["look-ahead"].tolist() == ["20 of 40"] * 2
    page = (finished / "report.html").read_text()
    assert "Failed: 1 of 5 checks found look-ahead." in page
    assert '<span class="bad-word">20</span> of 40' in page
    assert "column words, by the encoder tiny" in page
    assert "on texts until 2024-03-11T00:00:00+00:00" in page


@pytest.mark.slow
def test_the_record_names_the_encoder_its_digest_and_its_streams(
    finished: Path,
) -> None:
    assert contents(finished, "run.json")["encoders"] == [
        {
            "name": "tiny",
            "digest": "tiny-1",
            "training_cutoff": "2024-03-11T00:00:00+00:00",
            "num_features": 3,
            "streams": ["news"],
            "num_look_ahead": 20,
            "num_forecasts": 40,
        }
    ]


@pytest.mark.slow
def test_a_second_run_encodes_nothing(finished: Path, folder: Path) -> None:
    config = folder / "prices.yaml"
    again = encoder()
    assert not run(config, encoders={"tiny": again}).is_new
    changed = ["forecasters.ridge.penalties=[1.0]"]
    assert run(config, overrides=changed, encoders={"tiny": again}).is_new
    assert again.asked == []
    assert len(list((finished / "embeddings").glob("*/*.parquet"))) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("finished")
def test_another_digest_of_the_encoder_is_another_request(folder: Path) -> None:
    other = CountingEncoder(digest="tiny-2", training_cutoff=BEFORE)
    finished = run(folder / "prices.yaml", encoders={"tiny": other})
    assert finished.is_new
    assert len(set(other.asked)) == 30


@pytest.mark.slow
@pytest.mark.parametrize("cutoff", [BEFORE, None])
@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_training_that_ended_before_the_test_spans_is_clean(
    tmp_path: Path, cutoff: pd.Timestamp | None, executor: str
) -> None:
    path = price_experiment(tmp_path, sources=SOURCES, executor={"kind": executor})
    finished = run(path, encoders={"tiny": encoder(cutoff)})
    assert not finished.forecasts["look_ahead"].any()
    assert contents(finished.folder, "certificate.json")["passed"] is True
    page = finished.report.read_text()
    assert ("on no text, as it says itself" in page) == (cutoff is None)
    assert "0 of 40" in page


@pytest.mark.slow
@pytest.mark.parametrize("is_encoded", [False, True])
def test_a_log_from_python_is_marked_whoever_encoded_it(
    tmp_path: Path,
    is_encoded: bool,  # noqa: FBT001 (a case, not a switch)
) -> None:
    experiment, base = load_experiment(price_experiment(tmp_path, sources=SOURCES))
    log, own = load_log(experiment, base), {"tiny": encoder()}
    declared = {"news": "tiny"}
    if is_encoded:
        log, own, declared = with_embeddings(log, "news", encoder()), {}, {}
    path = price_experiment(tmp_path, sources=[], encoders=declared)
    finished = run(path, log=log, encoders=own)
    assert finished.forecasts["look_ahead"].sum() == 40
    assert contents(finished.folder, "certificate.json")["passed"] is False


@pytest.mark.slow
def test_a_stored_text_is_encoded_where_the_configuration_says_by_what(
    tmp_path: Path,
) -> None:
    price_experiment(tmp_path)
    (tmp_path / "sources.yaml").write_text(yaml.safe_dump({"sources": SOURCES}))
    ingest(tmp_path / "sources.yaml", into=str(tmp_path / "store"))
    stored = {"preset": "store", "path": "store"}
    path = price_experiment(tmp_path, sources=[stored], encoders={"news": "tiny"})
    used = encoder(BEFORE)
    finished = run(path, encoders={"tiny": used})
    assert len(set(used.asked)) == 30
    assert contents(finished.folder, "certificate.json")["passed"] is True


def test_a_store_that_grows_while_it_is_read_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    price_experiment(tmp_path)
    (tmp_path / "sources.yaml").write_text(
        yaml.safe_dump({"sources": [price_source()]})
    )
    into = str(tmp_path / "store")
    ingest(tmp_path / "sources.yaml", into=into)
    path = price_experiment(tmp_path, sources=[{"preset": "store", "path": "store"}])

    def grow_and_load(experiment: Experiment, base: Path) -> EventLog:
        with (tmp_path / "prices.csv").open("a") as file:
            file.write("A,2024-06-01,100.0\n")
        ingest(tmp_path / "sources.yaml", into=into)
        return load_log(experiment, base)

    monkeypatch.setattr("infoset.pipeline.preparation.load_log", grow_and_load)
    with pytest.raises(
        ValueError,
        match=r"source store must stay .* changed while it was read\. Run aga",
    ):
        run(path)
    assert not list((tmp_path / "runs").rglob("done.json"))


@pytest.mark.slow
def test_a_run_without_encoders_has_no_mark(tmp_path: Path) -> None:
    hashed = news_source(hashing={"num_features": 4})
    finished = run(price_experiment(tmp_path, sources=[price_source(), hashed]))
    assert "look_ahead" not in finished.forecasts
    assert "encoders" not in contents(finished.folder, "run.json")
    assert "look-ahead" not in comparison_text(finished.folder)
    assert "hashed into 4 numbers; nothing is learned" in finished.report.read_text()


def test_the_numbers_of_a_text_reach_the_forecasters(tmp_path: Path) -> None:
    experiment, base = load_experiment(price_experiment(tmp_path, sources=SOURCES))
    log = load_log(experiment, base)
    assert log.values_of("news") == ("text",)
    with pytest.raises(
        ValueError, match="'news' must be encoded by 'tiny' before infor"
    ):
        prepare(experiment, log)


def test_looking_up_needs_no_encoder_and_shows_the_text(tmp_path: Path) -> None:
    config = str(price_experiment(tmp_path, sources=SOURCES))
    with (tmp_path / "news.csv").open("a") as file:
        file.write(f"2024-06-01T00:00Z,{'long ' * 40}\n")
    known = known_at(config, at="2024-01-05", stream="news")
    assert known["values"].tolist() == ["text item 1"]
    [long] = known_at(config, at="2024-06-02", stream="news")["values"]
    assert long == f"text {'long ' * 16}..."


@pytest.mark.parametrize(
    ("changes", "names", "message"),
    [
        (
            {"sources": SOURCES},
            [],
            r"encoder must be given by `run\(config, encoders=...\)` or installed under",
        ),
        (
            {"sources": SOURCES},
            ["tiny", "tinny"],
            r"encoders that are given must be declared \(tiny\); got 'tinny'. Did you me",
        ),
        (
            {"sources": SOURCES, "encoders": {"wire": "tiny"}},
            ["tiny"],
            r"encoders must name streams of the log \(close/1d, news\); got 'wire'",
        ),
        (
            {"sources": SOURCES, "encoders": {"news": "other"}},
            ["tiny", "other"],
            r"texts of stream 'news' must be encoded in one way; got tiny",
        ),
        (
            {"encoders": {"close/1d": "tiny"}},
            ["tiny"],
            r"stream 'close/1d' must have a text value named 'text' to be encoded",
        ),
    ],
)
def test_a_wrong_declaration_is_refused(
    tmp_path: Path, changes: dict[str, object], names: list[str], message: str
) -> None:
    given = {name: CountingEncoder(name=name, digest=name) for name in names}
    with pytest.raises(ValueError, match=message):
        run(price_experiment(tmp_path, **changes), encoders=given)
    assert not list(tmp_path.glob("runs/*/forecasts.parquet"))
