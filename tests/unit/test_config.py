"""The configuration: what it takes, and how it says what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd
import pytest
import yaml

from infoset.data import EventLog, forecast_points
from infoset.pipeline.config import Experiment, load_experiment, shipped_experiments
from infoset.pipeline.request import request_digest

SOURCE: dict[str, Any] = {
    "path": "prices.csv",
    "stream": "close/1d",
    "entity": {"column": "id"},
    "event_time": {"column": "day", "stamp": "date", "at": "16:00", "zone": "UTC"},
    "available_at": {"column": "known", "zone": "UTC"},
    "values": {"value": "close"},
}
SMALL: dict[str, Any] = {
    "name": "small",
    "sources": [SOURCE],
    "forecast_times": {"kind": "interval", "interval": "1D"},
    "targets": [{"entities": ["A", "B"], "stream": "close/1d"}],
    "forecasters": {"ewma": {"kind": "ewma"}, "linear": {"kind": "linear"}},
}


def loaded(*overrides: str) -> Experiment:
    return load_experiment(SMALL, overrides)[0]


def refusal(override: str) -> str:
    """Return what is wrong with a setting, which `--set` is blamed for."""
    with pytest.raises(ValueError, match=r"^--set ") as caught:
        loaded(override)
    name, _, wrong = str(caught.value).partition(": ")
    assert name == f"--set {override.partition('=')[0]}"
    return wrong


def written(folder: Path, text: str, name: str = "my.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


# What comes with the package


def test_there_are_two_shipped_experiments() -> None:
    assert {"smoke", "treasury"} <= set(shipped_experiments())


@pytest.mark.parametrize("name", shipped_experiments())
def test_a_shipped_experiment_loads_by_its_name(name: str) -> None:
    experiment, base = load_experiment(name)
    assert experiment.name == name
    assert (base / f"{name}.yaml").is_file()
    assert experiment.baseline in experiment.forecasters


@pytest.mark.parametrize("name", shipped_experiments())
def test_the_resolved_text_gives_the_same_experiment(name: str, tmp_path: Path) -> None:
    experiment, _ = load_experiment(name)
    again, _ = load_experiment(written(tmp_path, experiment.to_yaml()))
    assert again == experiment
    assert again.digest == experiment.digest
    assert again.to_yaml() == experiment.to_yaml()


def test_an_unknown_name_lists_the_shipped_ones_and_the_nearest() -> None:
    message = r"one of .*smoke, treasury; got 'tresury'\. Did you mean 'treasury'\?$"
    with pytest.raises(ValueError, match=message):
        load_experiment("tresury")


# Wrong keys and values


@pytest.mark.parametrize(
    ("override", "place", "meant"),
    [
        ("trainig={}", "experiment", "training"),
        ("folds.first_tst=2012-01-01", "folds", "first_test"),
        ("training.max_step=5", "training", "max_steps"),
        ("history.lst=5", "history", "last"),
        ("forecast_times.intervall=1h", "forecast_times", "interval"),
        ("forecasters.linear.featuremap=elu1", "forecasters.linear", "feature_map"),
        ("forecasters.mine={kind: ridge, penalty: 1}", "forecasters.mine", "penalties"),
        ("sources.0.pth=a.csv", "sources.0", "path"),
        ("sources.0.entity={colum: id}", "sources.0.entity", "column"),
        ("sources.0.event_time.zon=UTC", "sources.0.event_time", "zone"),
        ("sources.0.available_at.zon=UTC", "sources.0.available_at", "zone"),
        (
            "sources.0.values={value: {column: close, knd: number}}",
            "sources.0.values.value",
            "kind",
        ),
        ("targets.0.scal=100", "targets.0", "scale"),
    ],
)
def test_a_wrong_key_names_its_place_and_the_nearest_right_one(
    override: str, place: str, meant: str
) -> None:
    wrong = override.partition("=")[0].rpartition(".")[2]
    message = refusal(override)
    assert message.startswith(f"{place} has no key ")
    assert f"Did you mean '{meant}'? Known keys: " in message
    assert repr(wrong) in message or "{" in override
    assert "\n" not in message


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            "forecasters.linear.feature_map=elu",
            "forecasters.linear.feature_map must be one of "
            "'elu1', 'favor', 'hedgehog', 'identity', 'relu' or 'squared_relu'; got 'elu'.",
        ),
        (
            "boundary=open",
            "boundary must be one of 'inclusive' or 'strict'; got 'open'.",
        ),
        (
            "forecasters.linear.kind=linea",
            "forecasters.linear must have as `kind` one of 'historical', 'ewma', "
            "'ridge', 'boosting', 'linear', 'softmax', 'installed'; got 'linea'.",
        ),
        ("forecasters.mine={}", "forecasters.mine must have a `kind`."),
        (
            "forecasters.linear=linear",
            "forecasters.linear must be a mapping of keys and values; got 'linear'.",
        ),
        (
            "forecasters={a/b: {kind: ewma}}",
            "forecasters must have names of letters, digits, - and _, each starting "
            "with a letter or digit; got 'a/b'.",
        ),
        (
            "name=my run",
            "name must consist of letters, digits, - and _, and start with a letter or "
            "digit; got 'my run'.",
        ),
        # MLflow refuses the name of a model with a dot, after everything is fitted.
        (
            "name=v1.0-1",
            "name must consist of letters, digits, - and _, and start with a letter or "
            "digit; got 'v1.0-1'.",
        ),
        (
            "name=",
            "name must be text (in quotes if it looks like something else); got None.",
        ),
        ("seeds=0", "seeds must be a list; got 0."),
        ("seeds=[]", "seeds must not be empty; got []."),
        ("seeds=[0, one]", "seeds.1 must be a whole number; got 'one'."),
        (
            "training.max_steps=1.5",
            "training.max_steps must be a whole number; got 1.5.",
        ),
        (
            "training.learning_rate=x",
            "training.learning_rate must be a number; got 'x'.",
        ),
        ("scale.decay=1", "scale.decay must be less than 1; got 1."),
        (
            "scale.prior_weight=.inf",
            "scale.prior_weight must be a finite number; got inf.",
        ),
        (
            "folds.expand_train=maybe",
            "folds.expand_train must be true or false; got 'maybe'.",
        ),
        (
            "history_lengths=[8, 0]",
            "history_lengths.1 must be greater than or equal to 1; got 0.",
        ),
        (
            "history={last: 3, since: year}",
            "history must have `last`, `since` or neither; got both. Remove one.",
        ),
        (
            "network.num_heads=3",
            "network must have a width that is a multiple of num_heads; got 32 and 3.",
        ),
        (
            "sources.0.entity=007",
            "sources.0.entity must be text (in quotes if it looks like a number) or "
            "{column: name}; got 7.",
        ),
        ("sources.0.entity=''", "sources.0.entity must not be empty; got ''."),
        (
            "sources.0.available_at={sessions: 0, calendar: XNYS, at: '16:00', zone: UTC}",
            "sources.0.available_at.sessions must be greater than or equal to 1; got 0.",
        ),
        (
            "sources.0.available_at.zone=Moon/Base",
            "sources.0.available_at.zone must be an IANA zone such as "
            "America/New_York; got 'Moon/Base'.",
        ),
    ],
)
def test_a_wrong_value_says_what_is_right(override: str, message: str) -> None:
    assert refusal(override) == message


@pytest.mark.parametrize(
    ("override", "place"),
    [
        ("targets.0={entities: [A]}", "targets.0.stream"),
        ("forecast_times={kind: table}", "forecast_times.path"),
        ("forecasters.mine={kind: installed}", "forecasters.mine.name"),
        (
            "sources.0.event_time={column: t, stamp: period_end}",
            "sources.0.event_time.zone",
        ),
        (
            "sources.0.available_at={days: 1, at: '10:00'}",
            "sources.0.available_at.zone",
        ),
    ],
)
def test_a_missing_setting_is_named(override: str, place: str) -> None:
    assert refusal(override) == f"{place} must be given."


def test_every_wrong_setting_is_listed_on_a_line_of_its_own() -> None:
    given = SMALL | {"boundary": 4, "seeds": ["x"]}
    with pytest.raises(ValueError, match=r"^configuration:") as caught:
        load_experiment(given)
    assert str(caught.value).splitlines() == [
        "configuration:",
        "  boundary must be one of 'inclusive' or 'strict'; got 4.",
        "  seeds.0 must be a whole number; got 'x'.",
    ]


def test_the_file_and_each_override_are_blamed_for_what_they_made_wrong(
    tmp_path: Path,
) -> None:
    path = written(tmp_path, yaml.safe_dump(SMALL | {"boundary": 4}))
    overrides = ["seeds=[x]", "training={max_steps: 0, patience: 0}", "baseline=ewma"]
    with pytest.raises(ValueError, match=r"^my\.yaml") as caught:
        load_experiment(path, overrides)
    assert str(caught.value).splitlines() == [
        "my.yaml: boundary must be one of 'inclusive' or 'strict'; got 4.",
        "--set seeds: seeds.0 must be a whole number; got 'x'.",
        "--set training:",
        "  training.max_steps must be greater than or equal to 1; got 0.",
        "  training.patience must be greater than or equal to 1; got 0.",
    ]


def test_an_override_that_an_earlier_one_made_wrong_is_not_blamed() -> None:
    overrides = ["folds.expand_train=false", "seeds=[1]"]
    with pytest.raises(ValueError, match=r"^--set folds\.expand_train: folds must"):
        load_experiment(SMALL, overrides)
    # What a later one mends is no mistake.
    load_experiment(SMALL, [*overrides, "folds.train_size=1Y"])


def test_a_long_value_is_not_repeated_whole() -> None:
    message = refusal(f"baseline=[{'x' * 500}]")
    assert message.startswith("baseline must be text")
    assert len(message) < 200


def test_an_entity_with_two_targets_is_refused() -> None:
    message = refusal(
        "targets=[{entities: [A, B], stream: x}, {entities: [B], stream: y}]"
    )
    assert message == "targets must name each entity once; got B twice."


# The file


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError,
        match=r"config must be a readable file; got .*my\.yaml \(No such file or dir",
    ):
        load_experiment(tmp_path / "my.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: a: b\n", r"valid YAML; got .*my\.yaml: mapping values .* in line 1\."),
        (
            "- name\n",
            r"must hold keys and values; got list in .*my\.yaml\. Write `name:",
        ),
        ("", r"must hold keys and values; got NoneType in .*my\.yaml"),
        (
            "name: a\nfolds: {test_size: 1Y}\nfolds: {}\n",
            r"valid YAML; got .*my\.yaml: the key 'folds' stands twice in line 3\.",
        ),
        (
            "name: a\nfolds:\n  test_size: 1Y\n  test_size: 2Y\n",
            r"the key 'test_size' stands twice in line 4\.",
        ),
    ],
)
def test_a_file_of_something_else_is_refused(
    text: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        load_experiment(written(tmp_path, text))


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "my.yaml"
    path.write_bytes("name: é".encode("latin-1"))
    with pytest.raises(ValueError, match=r"must be UTF-8 text; got byte 0xe9 at .* 6"):
        load_experiment(path)


def test_a_part_may_be_written_once_and_used_twice(tmp_path: Path) -> None:
    other = yaml.safe_dump(SMALL | {"forecasters": {}}).replace("forecasters: {}\n", "")
    text = "forecasters:\n  one: &it {kind: linear}\n  two: {<<: *it}\n" + other
    experiment, _ = load_experiment(written(tmp_path, text))
    assert experiment.forecasters["one"] == experiment.forecasters["two"]


def test_complaints_start_with_the_name_of_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, yaml.safe_dump(SMALL | {"boundary": "open"}))
    with pytest.raises(ValueError, match=r"^my\.yaml: boundary must be one of"):
        load_experiment(path)


# Overrides


@pytest.mark.parametrize(
    ("override", "read"),
    [
        ("name=other", lambda e: e.name == "other"),
        ("training.max_steps=7", lambda e: e.training.max_steps == 7),
        ("history={last: 3}", lambda e: e.history.last == 3),
        ("history=all", lambda e: e.history.last is None),
        ("history_lengths=[8, 16]", lambda e: e.history_lengths == (8, 16)),
        ("targets.0.scale=100", lambda e: e.targets[0].scale == 100),
        ("targets.0.entities.1=C", lambda e: e.entities == ("A", "C")),
        ("sources.0.where={series: [X]}", lambda e: e.sources[0].where["series"]),
        ("forecasters={}", lambda e: not e.forecasters),
        ("forecasters.new={kind: ridge}", lambda e: "new" in e.forecasters),
        ("description=a=b", lambda e: e.description == "a=b"),
        ("baseline=null", lambda e: e.baseline is None),
    ],
)
def test_an_override_changes_one_setting(
    override: str, read: Callable[[Experiment], object]
) -> None:
    assert read(loaded(override))


def test_the_last_override_of_a_setting_counts() -> None:
    assert loaded("seeds=[1]", "seeds=[2]").seeds == (2,)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.max_steps", r"--set must read path\.to\.key=value; got 'training"),
        ("=3", r"--set must read path\.to\.key=value; got '=3'"),
        ("training.=3", r"--set must read path\.to\.key=value; got 'training\.=3'"),
        ("seeds=[1", r"--set must hold a YAML value; got 'seeds=\[1': .* in line 1"),
        (
            "name.x=3",
            r"--set must name a key .* got 'name\.x=3', but 'x' .* in 'small'",
        ),
        (
            "targets.1.scale=3",
            r"a place in a list of 1, from 0; got '1' in 'targets\.1",
        ),
        ("targets.first=3", r"a place in a list of 1, from 0; got 'first' in 'targets"),
        ("folds={test_size: 1Y, test_size: 2Y}", r"the key 'test_size' stands twice"),
    ],
)
def test_an_override_that_cannot_be_followed_is_refused(
    override: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        loaded(override)


def test_overrides_leave_the_given_mapping_as_it_was() -> None:
    given = MappingProxyType({**SMALL, "seeds": (3,)})
    experiment, _ = load_experiment(given, ["targets.0.scale=5", "seeds.0=4"])
    assert (experiment.targets[0].scale, experiment.seeds) == (5, (4,))
    assert "scale" not in SMALL["targets"][0]
    assert given["seeds"] == (3,)


# Dates and sizes of folds


@pytest.mark.parametrize("text", ["2012-01-01", "'2012-01-01'", "2012-01-01T00:00:00Z"])
def test_a_date_may_stand_without_quotes(text: str) -> None:
    experiment = loaded(f"folds.first_test={text}")
    assert experiment.folds.first_test == "2012-01-01"
    assert experiment.digest == loaded("folds.first_test='2012-01-01'").digest


def test_a_date_from_python_is_stored_as_text() -> None:
    given = SMALL | {"folds": {"last_test": date(2012, 6, 30)}}
    assert load_experiment(given)[0].folds.last_test == "2012-06-30"


@pytest.mark.parametrize("given", [2012, "soon", True, datetime(2012, 1, 1, 12)])
def test_what_is_no_date_is_refused(given: object) -> None:
    with pytest.raises(
        ValueError, match=r"configuration: folds\.first_test must be a date \(UTC\)"
    ):
        load_experiment(SMALL | {"folds": {"first_test": given}})


@pytest.mark.parametrize("name", ["test_size", "train_size", "validation_size"])
@pytest.mark.parametrize("size", ["2 years", "0", "1.5", "[1]", "true"])
def test_what_is_no_size_is_refused_before_anything_is_read(
    name: str, size: str
) -> None:
    message = refusal(f"folds.{name}={size}")
    assert message.startswith(f"folds.{name} must be a calendar term or a count")


def test_an_embargo_may_be_empty() -> None:
    assert loaded("folds.embargo_size=0").folds.embargo_size == 0


def test_rolling_folds_need_a_training_size() -> None:
    assert refusal("folds.expand_train=false") == (
        "folds must have a `train_size` where `expand_train` is false; got none."
    )


# The digest

CHANGES = (
    "name=other",
    "description=other",
    "sources.0.path=other.csv",
    "encoders={news: tiny}",
    "universe={path: m.csv, entity: id, member_from: since, member_until: until}",
    "forecast_times.interval=2D",
    "boundary=strict",
    "history={since: year}",
    "history_lengths=[8]",
    "targets.0.scale=2",
    "scale.decay=0.9",
    "folds.first_test=2012-01-01",
    "forecasters.linear.feature_map=relu",
    "baseline=ewma",
    "network.width=16",
    "training.max_steps=7",
    "seeds=[1]",
    "latency.num_forecasts=50",
    "certificate.num_points=3",
    "executor.num_workers=3",
)


def test_the_digest_changes_with_each_setting() -> None:
    digests = {loaded(change).digest for change in ("seeds=[0]", *CHANGES)}
    assert len(digests) == 1 + len(CHANGES)
    changed = {change.partition("=")[0].partition(".")[0] for change in CHANGES}
    assert changed == set(Experiment.model_fields) - {"runs", "tracking_uri"}


def test_the_digest_does_not_tell_where_files_go() -> None:
    elsewhere = loaded("runs=/elsewhere", "tracking_uri=sqlite:////elsewhere/m.db")
    assert elsewhere.digest == loaded().digest
    assert elsewhere.run_dir == Path("/elsewhere/small")


def test_defaults_and_the_same_values_written_out_have_one_digest() -> None:
    plain = loaded()
    full, _ = load_experiment(plain.model_dump(mode="json"))
    assert full == plain
    assert full.digest == plain.digest


# Paths

POINTS = "entity,forecast_time\nA,2024-01-02T09:00:00Z\nB,2024-01-02T10:00:00Z\n"


def log() -> EventLog:
    times = pd.to_datetime(["2024-01-01"], utc=True)
    frame = pd.DataFrame(
        {"entity": "A", "event_time": times, "available_at": times, "value": 1.0}
    )
    return EventLog.from_pandas(frame, stream="close/1d", values=["value"])


def with_table(folder: Path, path: str) -> Experiment:
    times = {"kind": "table", "path": path}
    text = yaml.safe_dump(SMALL | {"sources": [], "forecast_times": times})
    return load_experiment(written(folder, text))[0]


@pytest.mark.parametrize("kind", ["relative", "absolute"])
def test_a_table_of_forecast_times_lies_beside_the_configuration(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "experiments"
    folder.mkdir()
    path = written(folder, POINTS, "points.csv")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    experiment = with_table(folder, "points.csv" if kind == "relative" else str(path))
    points = forecast_points(experiment.forecast_times, log(), experiment.entities)
    assert points["entity"].tolist() == ["A", "B"]


def test_where_the_folder_lies_does_not_change_the_digest(tmp_path: Path) -> None:
    digests = set()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        experiment = with_table(tmp_path / name, "points.csv")
        assert "points.csv" in experiment.to_yaml()
        assert str(tmp_path) not in experiment.to_yaml()
        digests.add(experiment.digest)
    assert len(digests) == 1


def test_another_content_of_the_table_is_another_request(tmp_path: Path) -> None:
    path = written(tmp_path, POINTS, "points.csv")
    experiment = with_table(tmp_path, "points.csv")
    before = request_digest(experiment, tmp_path)
    path.write_text(POINTS.replace("09:00", "09:30"))
    assert request_digest(experiment, tmp_path) != before


def test_a_missing_table_is_named_as_the_configuration_writes_it(
    tmp_path: Path,
) -> None:
    experiment = with_table(tmp_path, "points.csv")
    with pytest.raises(
        ValueError,
        match=r"forecast_times\.path must be a readable file; got 'points\.csv', "
        r"relative to .*\. Correct `path`\.",
    ):
        forecast_points(experiment.forecast_times, log(), experiment.entities)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "No columns to parse"),
        (
            "entity,time\nA,2024-01-02T09:00:00Z\n",
            "must have the column 'forecast_time'",
        ),
        ("entity,forecast_time\nA,2024-01-02 09:00\n", "must be timezone-aware"),
        ("entity,forecast_time\nA,soon\n", "soon"),
    ],
)
def test_a_table_that_cannot_be_understood_is_named(
    content: str, reason: str, tmp_path: Path
) -> None:
    written(tmp_path, content, "points.csv")
    experiment = with_table(tmp_path, "points.csv")
    with pytest.raises(
        ValueError,
        match=rf"forecast_times\.path must be a CSV .* got .*points\.csv: .*{reason}",
    ):
        forecast_points(experiment.forecast_times, log(), experiment.entities)


def test_the_path_of_a_source_is_relative_to_the_configuration(tmp_path: Path) -> None:
    written(tmp_path, "id,day,known,close\nA,2024-01-02,2024-01-03,1\n", "prices.csv")
    path = written(tmp_path, yaml.safe_dump(SMALL))
    experiment, base = load_experiment(path)
    assert base == tmp_path
    before = request_digest(experiment, base)
    written(tmp_path, "id,day,known,close\nA,2024-01-02,2024-01-03,2\n", "prices.csv")
    assert request_digest(experiment, base) != before
