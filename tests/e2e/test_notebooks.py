"""The notebooks run from a bare folder, and what they store is what a run prints.

After an edit, `jupyter execute --inplace notebooks/*.ipynb` stores the outputs anew.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

FOLDER = Path(__file__).parents[2] / "notebooks"
KERNEL = "infoset-tests"
MAX_BYTES = 300_000

# What the text of each notebook says about its own outputs. Payroll levels: Employment
# Situation of the day named, shipped in macro_releases.csv.gz. Attention: 8/3 and
# (2 e^2 + 4 e) / (e^2 + e), exact.
NUMBERS = {
    "01_what_was_known": (
        "known 2008-02-01: 138119 to 138102, change -17 thousand",
        "known 2008-03-07: 138078 to 138056, change -22 thousand",
        "known 2008-04-04: 138078 to 138002, change -76 thousand",
        "known 2009-02-06: 138152 to 138080, change -72 thousand",
        "2008 as first printed: -1882 thousand",
        "2008 one year later:   -3082 thousand",
        "months of 2008 that were revised down: 12",
        "events of earlier periods that were not available: 185",
    ),
    "02_attention_by_hand": (
        "answer 2.6666666667",
        "answer 8 / 3 = 2.6666666667",
        "linear, identity map   2.6666666667",
        "softmax                2.5378828427",
        "softmax by hand        2.5378828427",
        "inclusive  by hand [2.     2.6667]  library [2.     2.6667]",
        "strict     by hand [0. 2.]  library [0. 2.]",
        "linear   largest difference below 1e-12: True",
        "softmax  largest difference below 1e-12: True",
    ),
}

_MACHINE_PATH = re.compile(r"(?<![\w.:/<])/[\w.-]+/[\w.-]+|\b[A-Za-z]:\\\w|~/\w")


def machine_paths(text: str) -> list[str]:
    return _MACHINE_PATH.findall(text)


def outputs_of(notebook: NotebookNode) -> list[NotebookNode]:
    return [out for c in notebook.cells if c.cell_type == "code" for out in c.outputs]


def printed(notebook: NotebookNode, stream: str = "stdout") -> str:
    outputs = outputs_of(notebook)
    return "".join(
        out.text
        for out in outputs
        if out.output_type == "stream" and out.name == stream
    )


def num_figures(notebook: NotebookNode) -> int:
    return sum("image/png" in out.get("data", {}) for out in outputs_of(notebook))


def texts(content: object) -> Iterator[str]:
    """Yield every stored text but that of figures, whose letters may spell anything."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in content:
            yield from texts(part)
    elif isinstance(content, dict):
        for key, part in content.items():
            if key != "image/png":
                yield from texts(part)


def stored(name: str) -> NotebookNode:
    path = FOLDER / f"{name}.ipynb"
    notebook: NotebookNode = nbformat.read(path, as_version=4)
    return notebook


@pytest.fixture(scope="module", params=NUMBERS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Make this interpreter a kernel that is found first and forgotten afterwards."""
    import_module("matplotlib.font_manager")  # a kernel would speak of a missing cache
    root = tmp_path_factory.mktemp("jupyter")
    spec = root / "kernels" / KERNEL / "kernel.json"
    spec.parent.mkdir(parents=True)
    arguments = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec.write_text(
        json.dumps({"argv": arguments, "display_name": KERNEL, "language": "python"})
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(root))
        for place in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):
            patch.setenv(place, str(root / place.lower()))
        patch.delenv("MPLBACKEND", raising=False)  # the kernel's own stores figures
        yield


@pytest.fixture(scope="module")
def folder(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp(name)


@pytest.fixture(scope="module")
def executed(name: str, kernel: None, folder: Path) -> NotebookNode:  # noqa: ARG001
    """Run a notebook; a cell that raises is an error with its traceback."""
    notebook = stored(name)
    NotebookClient(
        notebook,
        kernel_name=KERNEL,
        timeout=300,
        resources={"metadata": {"path": str(folder)}},
    ).execute()
    return notebook


@pytest.mark.slow
def test_notebook_runs_without_a_warning_and_leaves_no_file(
    executed: NotebookNode, folder: Path
) -> None:
    assert printed(executed, "stderr") == ""
    assert not [out for out in outputs_of(executed) if out.output_type == "error"]
    assert list(folder.iterdir()) == []


@pytest.mark.slow
def test_notebook_prints_the_numbers_that_its_text_speaks_of(
    executed: NotebookNode, name: str
) -> None:
    missing = [number for number in NUMBERS[name] if number not in printed(executed)]
    assert missing == []


@pytest.mark.slow
def test_stored_outputs_are_those_of_a_run(executed: NotebookNode, name: str) -> None:
    assert printed(stored(name)) == printed(executed)
    assert num_figures(stored(name)) == num_figures(executed) > 0


def test_a_later_revision_leaves_the_stored_fingerprint_as_it_was() -> None:
    found = re.findall(r"\b[0-9a-f]{32}\b", printed(stored("01_what_was_known")))
    before, after, later_forecast = found
    assert before == after != later_forecast


def test_every_code_cell_is_stored_as_run_once_from_top_to_bottom(name: str) -> None:
    cells = [cell for cell in stored(name).cells if cell.cell_type == "code"]
    counts = [cell.execution_count for cell in cells]
    assert counts == list(range(1, len(cells) + 1))


def test_stored_notebook_is_small_and_names_no_machine(name: str) -> None:
    path = FOLDER / f"{name}.ipynb"
    assert path.stat().st_size < MAX_BYTES
    content = json.loads(path.read_text("utf-8"))
    assert [text for text in texts(content) if machine_paths(text)] == []


def test_every_notebook_of_the_folder_is_tested() -> None:
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == set(NUMBERS)


@pytest.mark.parametrize(
    "text", ["/home/me/a.py", "at /tmp/ipykernel_1/2.py:1", r"C:\Users\me", "~/data"]
)
def test_a_planted_machine_path_is_found(text: str) -> None:
    assert machine_paths(text)


@pytest.mark.parametrize(
    "text", ["macro/PAYEMS", "8 / 3", "q S / q z", "https://example.org/a/b", "</a>"]
)
def test_names_fractions_and_addresses_are_no_machine_paths(text: str) -> None:
    assert machine_paths(text) == []
