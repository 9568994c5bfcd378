"""The suite on small networks: every combination, honest about what it cannot do."""

from __future__ import annotations

import os
from dataclasses import replace
from multiprocessing import Pipe

import numpy as np
import pandas as pd
import pytest
import torch
from worlds import sample_world

from infoset.data import CausalScale, History
from infoset.data.sequences import Samples
from infoset.models.attention_forecaster import Attention, AttentionForecaster
from infoset.models.settings import NetworkSize, Training
from infoset.pipeline.latency.asked import Asked
from infoset.pipeline.latency.closed_loop import LoopLimits
from infoset.pipeline.latency.columns import COLUMNS
from infoset.pipeline.latency.files import write_latency
from infoset.pipeline.latency.filled_streams import Contestant, FilledStreams
from infoset.pipeline.latency.metrics import crossover_metrics, latency_curves
from infoset.pipeline.latency.plan import LatencyPlan, full_plan
from infoset.pipeline.latency.reference_error import Float64Reference, reference_error
from infoset.pipeline.latency.side_by_side import _answers
from infoset.pipeline.latency.suite import fitted_tapes, measure_suite, scored_length
from infoset.pipeline.latency.tape import Tape
from infoset.pipeline.latency.turns import Workload

LIMITS = LoopLimits(num_forecasts=4, num_warm_up=1, seconds=0.2, fewest=4)
PLAN = LatencyPlan(
    form="full",
    lengths=(4, 12),
    scored_length=4,
    limits=LIMITS,
    backends=("torch",),
    arrivals=("poisson", "recorded"),
    limit_us=1e9,
    continues=True,
    num_checked=2,
)


@pytest.fixture(scope="module")
def samples() -> Samples:
    samples = sample_world(num_days=40).samples(History(last=8))
    samples = samples.take(np.flatnonzero(np.isfinite(samples.target)))
    scale = CausalScale.fit(samples, decay=0.94, prior_weight=2.0)
    return scale.apply(samples)


@pytest.fixture(scope="module")
def networks(samples: Samples) -> dict[str, AttentionForecaster]:
    found = {}
    kinds: dict[str, Attention] = {"lin": "linear", "soft": "softmax"}
    for name, attention in kinds.items():
        network = AttentionForecaster(
            attention,
            size=NetworkSize(width=8, num_layers=1, num_heads=2),
            training=Training(max_steps=1),
        )
        network.fit(samples, samples)
        # An untrained head ignores what it reads.
        assert network.network is not None
        generator = torch.Generator().manual_seed(3)
        with torch.no_grad():
            for weight in network.network.parameters():
                weight.add_(0.2 * torch.randn(weight.shape, generator=generator))
        found[name] = network
    return found


@pytest.fixture(scope="module")
def tapes(networks, samples: Samples) -> list[Tape]:
    return fitted_tapes(networks, samples)


@pytest.fixture(scope="module")
def table(networks, tapes) -> pd.DataFrame:
    with pytest.MonkeyPatch.context() as patch:
        # Ten trials of a thousand requests for each forecaster would take a minute.
        patch.setattr("infoset.pipeline.latency.open_rows._FEWEST_OF_TRIAL", 20)
        return measure_suite(networks, tapes, PLAN)


@pytest.mark.slow
def test_every_loop_is_measured_for_every_forecaster(table: pd.DataFrame) -> None:
    assert tuple(table.columns) == COLUMNS
    closed = table[table["loop"] == "closed"]
    keys = ["forecaster", "workload", "history_length"]
    assert len(closed) == len(closed[keys].drop_duplicates()) == 2 * 2 * 2
    assert (closed["time"] == "service").all()
    opened = table[(table["loop"] != "closed") & table["limit_us"].isna()]
    assert len(opened) == 2 * 2 * 2 * 2  # forecasters, workloads, arrivals, times
    assert set(opened["history_length"]) == {4}
    assert opened.groupby(["workload", "loop"])["rate_hz"].nunique().max() == 1
    limited = table[table["limit_us"].notna()]
    assert len(limited) == 2 * 2
    assert (limited["time"] == "response").all()
    assert (limited["rate_hz"] > 0).all()


@pytest.mark.slow
def test_a_row_says_what_it_is_and_how_quiet_it_was(table: pd.DataFrame) -> None:
    assert set(table["form"]) == {"full"}
    assert set(table["backend"]) == {"torch"}
    assert table["machine"].str.contains("cores").all()
    assert (
        table["versions"].str.contains(f"torch {torch.__version__}", regex=False).all()
    )
    assert table["undefined"].isna().all()
    for row in table.to_dict("records"):
        times = np.array(row["times_us"])
        assert row["num_forecasts"] == len(times) > 0
        assert row["p50_us"] == np.percentile(times, 50)
        assert row["p90_us"] == np.percentile(times, 90)
        assert row["max_us"] == times.max()
        assert np.isnan(row["p99_9_us"])
        assert row["p99_9_undefined"].startswith("p99.9 needs 10,000 forecasts")
        assert row["num_switches"] >= 0
        assert row["clock_step_ns"] > 0
        assert row["state_bytes"] > 0
        assert row["throughput_hz"] > 0


@pytest.mark.slow
def test_response_is_never_shorter_than_service(table: pd.DataFrame) -> None:
    opened = table[table["limit_us"].isna() & (table["loop"] != "closed")]
    keys = ["forecaster", "workload", "loop"]
    for _, pair in opened.groupby(keys):
        by_time = pair.set_index("time")["times_us"]
        service, response = (np.array(by_time[t]) for t in ("service", "response"))
        assert (response >= service).all()


@pytest.mark.slow
def test_the_error_against_float64_is_that_of_float32(table: pd.DataFrame) -> None:
    errors = table.loc[table["loop"] == "closed", "reference_error"]
    assert ((errors > 1e-9) & (errors < 1e-5)).all()


def filled_stream(network: AttentionForecaster, tapes: list[Tape]):
    contestant = Contestant("any", network, "torch")
    [stream] = FilledStreams(contestant, tapes[:1], "fresh").of_length(6)
    return stream


@pytest.mark.parametrize("name", ["lin", "soft"])
def test_many_events_at_once_give_the_state_of_one_after_the_other(
    networks, tapes, monkeypatch, name: str
) -> None:
    monkeypatch.setattr("infoset.pipeline.latency.bulk_fill._AT_ONCE", 7)
    contestant, tape = Contestant("any", networks[name], "torch"), tapes[0]
    [filled] = FilledStreams(contestant, tapes[:1], "streaming").of_length(20)
    slow = contestant.stream(tape.entity, History())
    for event in tape.events[:20]:
        slow.update(event)
    later = tape.events[20]
    for stream in (filled.stream, slow):
        stream.update(later)
    found, expected = (
        s.forecast(later.available_at).quantiles for s in (filled.stream, slow)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert filled.stream.state_bytes == slow.state_bytes


@pytest.mark.parametrize("workload", ["fresh", "streaming"])
def test_every_checked_forecast_has_the_reference_s_information_set(
    networks, tapes, workload: Workload
) -> None:
    # A state of 130 events takes in two before the loops fork it anew.
    contestant = Contestant("any", networks["soft"], "torch")
    [filled] = FilledStreams(contestant, tapes[:1], workload).of_length(130)
    reference = Float64Reference(networks["soft"])
    assert reference_error(reference, filled, workload, num=3) < 1e-5


def test_forecasts_of_another_network_are_far_from_the_reference(
    networks, tapes
) -> None:
    reference = Float64Reference(networks["soft"])
    own = reference_error(
        reference, filled_stream(networks["soft"], tapes), "fresh", num=1
    )
    other = reference_error(
        reference, filled_stream(networks["lin"], tapes), "fresh", num=1
    )
    assert own < 1e-5 < 1e-3 < other


def test_the_reference_leaves_the_network_as_it_is(networks, tapes) -> None:
    reference = Float64Reference(networks["lin"])
    events = tapes[0].events[:5]
    quantiles, scale = reference.scaled_quantiles("A", events, events[-1].available_at)
    assert quantiles.dtype == np.float64
    assert scale > 0
    assert {w.dtype for w in networks["lin"].network.parameters()} == {torch.float32}


def test_a_network_must_be_fitted_to_have_a_reference() -> None:
    with pytest.raises(ValueError, match="the forecaster must be fitted first"):
        Float64Reference(AttentionForecaster("linear"))


def test_a_length_beyond_the_tape_is_marked_where_it_is_allowed(
    networks, tapes
) -> None:
    short = [Tape("A", tapes[0].events[:10])]
    one = {"lin": networks["lin"]}
    plan = replace(
        PLAN,
        lengths=(3, 12),
        scored_length=3,
        arrivals=(),
        limit_us=None,
        num_checked=1,
    )
    found = measure_suite(one, short, plan)
    marked = dict(
        zip(found["history_length"], found["synthetic_continuation"], strict=True)
    )
    assert marked == {3: False, 12: True}
    assert found["undefined"].isna().all()
    refused = measure_suite(one, short, replace(plan, continues=False))
    far = refused[refused["history_length"] == 12]
    assert set(far["undefined"]) == {"the longest timeline holds 10 events"}
    assert (far["num_forecasts"] == 0).all()


def test_without_a_tape_every_row_says_so(networks) -> None:
    found = measure_suite(networks, [], PLAN)
    assert set(found["undefined"]) == {
        "no entity has events and is known to every forecaster"
    }


@pytest.mark.slow
def test_a_backend_that_cannot_do_a_workload_is_a_reason_and_no_error(
    networks, tapes
) -> None:
    plan = replace(
        PLAN,
        lengths=(4,),
        backends=("torch", "numba"),
        arrivals=(),
        limit_us=None,
        num_checked=1,
    )
    found = measure_suite(networks, tapes, plan)
    cannot = (found["workload"] == "fresh") & (found["backend"] == "numba")
    why = "backend numba must have"
    assert cannot.sum() == 2
    assert found.loc[cannot, "undefined"].str.startswith(why).all()
    measured = found[~cannot]
    assert measured["undefined"].isna().all()
    assert (measured["num_forecasts"] == LIMITS.num_forecasts).all()
    assert (measured["reference_error"] < 1e-5).all()
    assert len(measured) == 2 * 3


@pytest.mark.slow
def test_several_streams_keep_a_state_each(networks, tapes) -> None:
    plan = replace(
        PLAN, lengths=(4,), entities=(1, 3), arrivals=(), limit_us=None, num_checked=1
    )
    found = measure_suite({"soft": networks["soft"]}, tapes, plan)
    by_streams = found.groupby("entities")["state_bytes"].max()
    assert by_streams[3] == 3 * by_streams[1]
    assert set(found["entities"]) == {1, 3}


@pytest.mark.slow
def test_two_processes_measure_together(networks, tapes, monkeypatch) -> None:
    monkeypatch.setattr("infoset.pipeline.latency.suite.WORKLOADS", ("streaming",))
    plan = replace(
        PLAN, lengths=(4,), instances=(1, 2), arrivals=(), limit_us=None, num_checked=1
    )
    found = measure_suite({"lin": networks["lin"]}, tapes, plan)
    together = found[found["instances"] == 2]
    assert set(together["workload"]) == {"streaming"}
    assert (together["num_forecasts"] == 2 * LIMITS.num_forecasts).all()
    if hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0)) > 1:
        # Though the suite itself is pinned to one core meanwhile.
        assert (
            together["cores"]
            .str.split(" | ", regex=False)
            .map(set)
            .map(len)
            .eq(2)
            .all()
        )
    alone = found[found["instances"] == 1]
    assert len(alone) == len(together) == 1


@pytest.mark.slow
def test_an_instance_that_fails_says_why(networks, tapes, monkeypatch) -> None:
    plan = replace(
        PLAN, lengths=(4,), instances=(2,), arrivals=(), limit_us=None, num_checked=1
    )
    monkeypatch.setattr(
        AttentionForecaster, "save", lambda _, folder: folder.mkdir(parents=True)
    )
    found = measure_suite({"lin": networks["lin"]}, tapes, plan)
    together = found["instances"] == 2
    why = "an instance of the latency suite must measure; it ended with FileNotFoundE"
    assert together.sum() == 2
    assert found.loc[together, "undefined"].str.startswith(why).all()
    # What was measured before stays.
    assert (found.loc[~together, "p50_us"] > 0).all()
    assert found.loc[~together, "undefined"].isna().all()


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ((None,), "must not die; one did"),
        (("MemoryError: all of it",), "ended with MemoryE"),
        (("BrokenBarrierError: ", "OSError: disk"), "ended with OSError: disk"),
        ((None, "OSError: disk"), "ended with OSError: disk"),
        (("BrokenBarrierError: ", None), "must not die; one did"),
        (("BrokenBarrierError: ",), "ended with BrokenBarrierError"),
    ],
)
def test_the_cause_of_a_failure_is_told_and_not_what_followed(
    said: tuple[str | None, ...], message: str
) -> None:
    waiting, _kept_open = Pipe(duplex=False)
    connections = [waiting]
    for text in said:
        failed, theirs = Pipe(duplex=False)
        if text is not None:
            theirs.send(text)
        theirs.close()
        connections.append(failed)
    with pytest.raises(ChildProcessError, match=message):
        _answers(connections)


def test_the_tracker_is_told_series_along_the_history_length(table) -> None:
    curves = latency_curves(table)
    assert [step for step, _ in curves["latency.lin.fresh.torch.p50_us"]] == [4, 12]
    assert len(curves["latency.soft.streaming.torch.poisson.response_p99_us"]) == 1
    assert "latency.lin.fresh.torch.throughput_hz" in curves
    assert "latency.lin.fresh.torch.p99_9_us" not in curves
    assert all(np.isfinite(v) for curve in curves.values() for _, v in curve)


def test_the_tracker_is_told_crossovers_that_are_defined(table) -> None:
    changed = table.copy()
    for place, row in enumerate(changed.to_dict("records")):
        factor = (row["history_length"] / 8) if row["forecaster"] == "soft" else 1.0
        changed.at[place, "times_us"] = factor * np.ones(4)
        changed.at[place, "p50_us"] = factor
    told = crossover_metrics(changed)
    # Costs are equal at 8 events, between the measured 4 and 12.
    assert told == {
        "latency.lin.fresh.torch.cheaper_than_soft_from": pytest.approx(8.0),
        "latency.lin.streaming.torch.cheaper_than_soft_from": pytest.approx(8.0),
    }


def test_the_file_keeps_the_crossovers_beside_the_rows(table, tmp_path) -> None:
    path = tmp_path / "latency.parquet"
    write_latency(path, table)
    found = pd.read_parquet(path)
    assert {each["workload"] for each in found.attrs["crossovers"]} == {
        "fresh",
        "streaming",
    }
    assert tuple(found.columns) == COLUMNS


def test_the_scored_length_is_that_of_the_history_or_the_nearest_measured() -> None:
    sizes = np.array([90.0, 100.0, 5_000.0])
    assert scored_length(64, sizes, (16, 256)) == 64
    assert scored_length(None, sizes, (16, 64, 256)) == 64
    assert scored_length(None, np.array([]), (16, 64)) == 16


def asked(**changes: object) -> Asked:
    plain: dict[str, object] = {
        "lengths": "64,256",
        "forecasts": 10_000,
        "seconds": 60.0,
        "rate": None,
        "limit_us": 10_000.0,
        "threads": "1",
        "entities": "1",
        "instances": "1",
        "backends": None,
    }
    return Asked(**plain | changes)  # type: ignore[arg-type]


def test_lists_of_the_command_line_become_a_plan() -> None:
    plan = asked(
        lengths="256, 64,64", threads="4", instances="1,2", backends="torch"
    ).plan(100)
    assert plan.lengths == (64, 100, 256)
    assert plan.scored_length == 100
    assert (plan.backends, plan.continues) == (("torch",), True)
    assert (plan.threads, plan.entities, plan.instances) == ((1, 4), (1,), (1, 2))
    assert asked().plan(64).backends == ("torch", "numba")
    assert asked().plan(64).limits.num_forecasts == 10_000


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"lengths": "64;256"},
            "--lengths must be whole numbers apart by commas, such ",
        ),
        ({"threads": ""}, "--threads must be whole numbers apart by commas"),
        (
            {"lengths": "0,64"},
            r"lengths must be whole numbers of at least 1; got 0, 64",
        ),
        ({"instances": "-1"}, r"instances must be whole numbers of at least 1; got -1"),
        ({"forecasts": 9}, "forecasts must be at least 10 and seconds above 0; got 9"),
        ({"seconds": 0.0}, "forecasts must be at least 10 and seconds above 0; got 1"),
        ({"rate": 0.0}, r"rate must be above 0; got 0.0. Correct --rate"),
        ({"limit_us": -1.0}, r"limit-us must be above 0; got -1.0. Correct --limit-us"),
        (
            {"backends": "torch,cuda"},
            "--backends must be of auto, torch, numba; got cuda",
        ),
    ],
)
def test_what_cannot_be_measured_is_refused(
    changes: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        asked(**changes).plan(64)


def test_the_full_plan_reaches_from_64_to_65536_events() -> None:
    plan = full_plan(scored_length=64)
    assert (plan.lengths[0], plan.lengths[-1]) == (64, 65_536)
    assert plan.limits.num_forecasts == 10_000
