"""How a run was started, and what it replaces: nothing is claimed or lost in silence."""

from pathlib import Path

import pytest
from run_folders import write_json

from infoset.pipeline import run
from infoset.pipeline.origin import Origin, replaced_run
from infoset.pipeline.run_files import RunFiles


def origin(
    config="smoke", overrides=(), *, has_log=False, forecasters=(), encoders=()
) -> Origin:
    return Origin.of(
        config,
        list(overrides),
        has_log=has_log,
        forecasters=list(forecasters),
        encoders=list(encoders),
    )


def test_a_run_from_files_alone_has_a_command_that_repeats_it() -> None:
    found = origin(Path("my runs/a.yaml"), ["folds.test_size=1Y", "name=a b"])
    assert found.given == ()
    assert found.command == (
        "infoset run 'my runs/a.yaml' --set folds.test_size=1Y --set 'name=a b'"
    )


@pytest.mark.parametrize(
    ("config", "given", "command", "names"),
    [
        (
            "x.yaml",
            {"has_log": True, "forecasters": ["mine", "theirs"]},
            "infoset.pipeline.run('x.yaml', overrides=['a=1'], log=..., "
            "forecasters={...})",
            ("an own log", "the forecaster mine", "the forecaster theirs"),
        ),
        (
            {"name": "x"},
            {},
            "infoset.pipeline.run({...}, overrides=['a=1'])",
            ("the configuration",),
        ),
        (
            "x.yaml",
            {"encoders": ["bert"]},
            "infoset.pipeline.run('x.yaml', overrides=['a=1'], encoders={...})",
            ("the encoder bert",),
        ),
    ],
)
def test_what_no_command_line_can_give_is_named(config, given, command, names) -> None:
    found = origin(config, ["a=1"], **given)
    assert found.command == command
    assert found.given == names


def earlier(folder: Path, **changes: object) -> RunFiles:
    files = RunFiles(folder)
    told = {
        "config_digest": "aaaa",
        "given": [],
        "command": "infoset run treasury",
        "started": "2026-11-30T04:44:39+00:00",
    }
    write_json(files.summary, told | changes)
    return files


def test_another_configuration_s_run_is_named_before_it_is_replaced(tmp_path) -> None:
    text = replaced_run(earlier(tmp_path), "bbbb", ())
    assert text.startswith(
        f"{tmp_path} holds a run of another configuration (infoset run treasury, "
        "2026-11-30 04:44 UTC). Its report and results are replaced; its tasks stay"
    )
    assert text.endswith("Another `name` keeps both.")


def test_a_run_with_other_objects_from_python_is_another_one(tmp_path) -> None:
    files = earlier(tmp_path, given=["the forecaster mine"])
    assert "a run with other objects from Python (" in replaced_run(files, "aaaa", ())
    assert replaced_run(files, "aaaa", ("the forecaster mine",)) == ""


def test_the_same_run_and_no_run_replace_nothing_worth_a_word(tmp_path) -> None:
    assert replaced_run(earlier(tmp_path), "aaaa", ()) == ""
    assert replaced_run(RunFiles(tmp_path / "empty"), "aaaa", ()) == ""
    (tmp_path / "run.json").write_text("{")
    assert replaced_run(RunFiles(tmp_path), "aaaa", ()) == ""


def test_a_run_of_unknown_age_is_named_all_the_same(tmp_path) -> None:
    files = earlier(tmp_path, started=None)
    assert "(infoset run treasury, at an unknown time)" in replaced_run(files, "b", ())


class Mine:
    def fit(self, train, validation):
        """Learn nothing."""

    def forecast(self, samples):
        raise NotImplementedError


def test_a_class_where_a_forecaster_should_be_is_refused_before_anything_runs(
    tmp_path,
) -> None:
    message = (
        r"^forecaster 'mine' must be an object; got the class Mine\. Write Mine\(\)"
    )
    with pytest.raises(TypeError, match=message):
        run("smoke", overrides=[f"runs={tmp_path}/runs"], forecasters={"mine": Mine})  # type: ignore[dict-item]
    assert list(tmp_path.iterdir()) == []
