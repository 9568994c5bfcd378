"""The wheel: it claims one name, and holds every part and nothing of the tests."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path, PurePosixPath
from typing import Any
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
FLOORS = ("configs", "data", "models", "pipeline")
NOT_SHIPPED = {"__pycache__"}


def folders_with_code() -> set[str]:
    """Return the folders of the four floors that hold Python files, as modules."""
    found = {
        path.parent.relative_to(ROOT)
        for floor in FLOORS
        for path in (ROOT / floor).rglob("*.py")
    }
    return {".".join(["infoset", *folder.parts]) for folder in found}


def shipped_files() -> set[str]:
    """Return the files of the four floors as they should lie in the wheel."""
    return {
        f"infoset/{path.relative_to(ROOT).as_posix()}"
        for floor in FLOORS
        for path in (ROOT / floor).rglob("*")
        if path.is_file() and not NOT_SHIPPED & set(path.parts)
    }


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Build the wheel from a copy, without a network; return the names in it."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for folder in (*FLOORS, "tests"):
        shutil.copytree(
            ROOT / folder, source / folder, ignore=shutil.ignore_patterns(*NOT_SHIPPED)
        )
    for name in ("pyproject.toml", "LICENSE", "README.md"):
        shutil.copy(ROOT / name, source / name)
    built = subprocess.run(
        [
            sys.executable,
            "-m",
            "build",
            "--wheel",
            "--no-isolation",
            "--outdir",
            target,
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=source,
    )
    assert built.returncode == 0, built.stdout[-2000:] + built.stderr[-2000:]
    [path] = target.glob("*.whl")
    with ZipFile(path) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


def test_every_folder_with_code_is_listed(project: dict[str, Any]) -> None:
    listed = project["tool"]["setuptools"]["packages"]
    assert listed == sorted(listed)
    assert set(listed) == folders_with_code()


def test_every_floor_has_its_import_name(project: dict[str, Any]) -> None:
    places = project["tool"]["setuptools"]["package-dir"]
    assert places == {f"infoset.{floor}": floor for floor in FLOORS}


def test_there_is_no_module_infoset_itself() -> None:
    # With one, the floors would no longer be portions of a namespace.
    assert not (ROOT / "infoset").exists()
    assert not (ROOT / "__init__.py").exists()


@pytest.mark.slow
def test_the_wheel_claims_the_single_name_infoset(wheel: set[str]) -> None:
    tops = {PurePosixPath(name).parts[0] for name in wheel}
    [metadata] = tops - {"infoset"}
    assert metadata.startswith("infoset-")
    assert metadata.endswith(".dist-info")
    assert "infoset/__init__.py" not in wheel


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_floors_and_no_other(
    wheel: set[str],
) -> None:
    held = {name for name in wheel if name.startswith("infoset/")}
    assert held == shipped_files()


@pytest.mark.slow
def test_the_wheel_holds_types_configurations_samples_and_the_page(
    wheel: set[str],
) -> None:
    for floor in FLOORS:
        assert f"infoset/{floor}/py.typed" in wheel
    for name in ("smoke", "treasury"):
        assert f"infoset/configs/{name}.yaml" in wheel
    for name in ("daily_market", "fomc_statements", "macro_releases"):
        assert f"infoset/data/samples/{name}.csv.gz" in wheel
    assert "infoset/data/samples/SOURCES.md" in wheel
    assert any(name.endswith(".html") for name in wheel)
    assert not any("tests" in PurePosixPath(name).parts for name in wheel)


@pytest.mark.slow
def test_the_wheel_offers_the_command_and_its_licence(wheel: set[str]) -> None:
    ends = {name.partition(".dist-info/")[2] for name in wheel}
    assert {"METADATA", "entry_points.txt", "licenses/LICENSE"} <= ends
