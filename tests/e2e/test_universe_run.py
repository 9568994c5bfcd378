"""A universe in a run: who left is forecast until then, and everybody is counted."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from price_runs import price_experiment

from infoset.pipeline import run
from infoset.pipeline.config import load_experiment
from infoset.pipeline.preparation import Prepared, load_log, prepare
from infoset.pipeline.request import request_digest

LEFT = pd.Timestamp("2024-03-10", tz="UTC")
COLUMNS = {"entity": "id", "member_from": "since", "member_until": "until"}
MEMBERS = "id,since,until,told\nA,2024-01-01,,2023-12-01\nB,2024-01-01,2024-03-10,2024-01-05\n"


def experiment_with(folder: Path, members: str = MEMBERS, **changes: object) -> Path:
    (folder / "members.csv").write_text(members)
    universe = COLUMNS | {"path": "members.csv", "zone": "UTC"}
    return price_experiment(folder, **({"universe": universe} | changes))


def prepared(path: Path) -> Prepared:
    experiment, base = load_experiment(path)
    return prepare(experiment, load_log(experiment, base))


def in_test_spans(ready: Prepared) -> pd.DataFrame:
    rows = np.concatenate([fold.test for fold in ready.folds])
    return ready.points.iloc[rows]


def test_who_later_left_is_still_forecast_before_leaving(tmp_path: Path) -> None:
    points = in_test_spans(prepared(experiment_with(tmp_path)))
    mine = points[points["entity"] == "B"]["forecast_time"]
    assert mine.min() == pd.Timestamp("2024-03-01", tz="UTC")
    assert mine.max() == LEFT - pd.Timedelta("1D")
    other = points[points["entity"] == "A"]["forecast_time"]
    assert other.max() == pd.Timestamp("2024-03-20", tz="UTC")


def test_the_points_that_stay_are_the_ones_of_a_run_without_a_universe(
    tmp_path: Path,
) -> None:
    restricted = prepared(experiment_with(tmp_path))
    free = prepared(price_experiment(tmp_path))
    keys = ["entity", "forecast_time"]
    both = free.points.merge(restricted.points, on=keys, suffixes=("", "_"))
    assert len(both) == len(restricted.points) < len(free.points)
    np.testing.assert_array_equal(both["target"], both["target_"])
    dropped = free.points[free.points["forecast_time"] >= LEFT]["entity"] == "B"
    assert len(free.points) - len(restricted.points) == dropped.sum()


@pytest.mark.parametrize("horizon", [1, 3])
def test_the_last_return_is_kept_and_resolves_after_the_entity_left(
    tmp_path: Path, horizon: int
) -> None:
    target = {"entities": ["A", "B"], "stream": "close/1d", "horizon": horizon}
    points = prepared(experiment_with(tmp_path, targets=[target])).points
    last = points[points["entity"] == "B"].iloc[-1]
    assert last["forecast_time"] == last["target_start"] == LEFT - pd.Timedelta("1D")
    assert last["target_end"] == last["target_start"] + pd.Timedelta(horizon, "D")
    assert last["resolves_at"] > LEFT
    assert np.isfinite(last["target"])


def test_prices_that_end_with_the_membership_keep_their_last_return(
    tmp_path: Path,
) -> None:
    path = experiment_with(tmp_path)
    prices = pd.read_csv(tmp_path / "prices.csv")
    gone = (prices["id"] == "B") & (prices["day"] > "2024-03-10")
    prices[~gone].to_csv(tmp_path / "prices.csv", index=False)
    points = prepared(path).points
    last = points[points["entity"] == "B"].iloc[-1]
    assert last["target_end"] == LEFT
    before = prices[(prices["id"] == "B") & (prices["day"] <= "2024-03-10")]["close"]
    assert last["target"] == pytest.approx(before.iloc[-1] - before.iloc[-2], abs=1e-9)


def test_a_member_is_trained_on_only_from_when_it_was_known_to_be_one(
    tmp_path: Path,
) -> None:
    told = COLUMNS | {"path": "members.csv", "zone": "UTC", "known_at": "told"}
    ready = prepared(experiment_with(tmp_path, universe=told))
    mine = ready.points[ready.points["entity"] == "B"]["forecast_time"]
    assert mine.min() == pd.Timestamp("2024-01-05", tz="UTC")
    counts = ready.excluded.set_index("reason")["count"]
    assert counts["membership was not known yet"] == 3  # from the first event on


def test_nothing_is_listed_where_there_is_no_universe(tmp_path: Path) -> None:
    excluded = prepared(price_experiment(tmp_path)).excluded
    assert not excluded["reason"].str.contains("member").any()


def test_another_table_of_members_is_another_request(tmp_path: Path) -> None:
    path = experiment_with(tmp_path)
    experiment, base = load_experiment(path)
    before = request_digest(experiment, base)
    (tmp_path / "members.csv").write_text(MEMBERS.replace("03-10", "03-11"))
    assert request_digest(experiment, base) != before


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_a_run_counts_and_tells_who_left(tmp_path: Path, executor: str) -> None:
    path = experiment_with(tmp_path, executor={"kind": executor, "num_workers": 2})
    finished = run(path)
    forecasts = finished.forecasts
    mine = forecasts[forecasts["entity"] == "B"]["forecast_time"]
    assert mine.max() == LEFT - pd.Timedelta("1D")
    excluded = json.loads((finished.folder / "run.json").read_text())["excluded"]
    counts = {row["reason"]: row["count"] for row in excluded}
    left = "left it before the end: forecast until then, the last target kept"
    assert counts[left] == 1
    assert counts["not a member of the universe then"] == 22  # 10 to 31 March
    page = finished.report.read_text()
    assert left in page
    assert "Membership is taken as known when it starts (column since)" in page
    assert json.loads((finished.folder / "certificate.json").read_text())["passed"]
