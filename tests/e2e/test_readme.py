"""What the README shows runs as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from infoset.data.calendars import sessions

README = Path(__file__).parents[2] / "README.md"
# Smaller networks and fewer looks, so that a test takes seconds.
TINY = """
network: {width: 8, num_layers: 1, num_heads: 2}
training: {max_steps: 2, check_every: 1}
latency: {history_lengths: [64], num_forecasts: 20, num_warm_up: 2}
certificate: {num_points: 2}
"""


def block(language: str) -> str:
    """Return the README's code in a language; there is one."""
    [found] = re.findall(rf"```{language}\n(.*?)```", README.read_text(), re.DOTALL)
    return str(found)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Make a folder with the README's configuration and made-up closes."""
    (tmp_path / "closes.yaml").write_text(block("yaml") + TINY)
    days = sessions("XNYS", "2021-01-04", "2023-09-29")["session"]
    moves = 0.01 * np.random.default_rng(2).standard_t(5, len(days))
    closes = pd.DataFrame({"date": days, "close": 100 * np.exp(moves.cumsum())})
    closes.to_csv(tmp_path / "closes.csv", index=False)
    return tmp_path


def run(place: Path, *arguments: str) -> str:
    ended = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=place,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.slow
def test_the_readme_s_configuration_of_one_csv_runs(place: Path) -> None:
    told = run(place, "-m", "infoset.pipeline.cli", "run", "closes.yaml")
    assert "fresh forecast, 64 events" in told
    assert "Reused 0 of 12 tasks." in told
    report = (place / "runs" / "closes" / "report.html").read_text()
    for name in ("historical", "ewma", "ridge", "boosting", "linear", "softmax"):
        assert f"│ {name} " in told
        assert name in report


@pytest.mark.slow
@pytest.mark.parametrize("with_sources", [True, False])
def test_the_readme_s_own_log_and_forecaster_run(
    place: Path, *, with_sources: bool
) -> None:
    config = place / "closes.yaml"
    # The test above fits them; here it does not matter what is fitted beside it.
    text = re.sub(r"  (ridge|boosting|linear|softmax): .*\n", "", config.read_text())
    if not with_sources:
        text = re.sub(r"sources:\n(  .*\n)+", "", text)
        assert "sources" not in text
    config.write_text(text)
    told = run(place, "-c", block("python"))
    assert "mine" in told
    assert "scaled_pinball" in told
    assert "runs/closes/report.html" in told


def test_the_readme_is_short() -> None:
    assert len(README.read_text().splitlines()) < 150
