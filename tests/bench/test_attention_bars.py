"""The judge of the attention benchmark, on made-up times."""

from __future__ import annotations

from attention_bars import Bar, bars
from attention_cells import LENGTHS, WIDTHS, Cell
from attention_results import Results
from in_turn import FEWEST_RUNS, Seconds, Timed, in_turn

# In units of elu1: every bar is cleared.
_GOOD = {
    "elu1": 1.0,
    "mapped": 0.9,
    "strict": 1.01,
    "favor": 1.5,
    "decay": 1.5,
    "sdpa": 20.0,
    "fast_transformers": 1.5,
    "performer": 40.0,
}
_PEAK = Cell(64, 16384, backward=True)


def run_of(times: dict[str, float]) -> Results:
    """Return a run in which every cell has these times, elu1 1 us per event."""
    results = Results(memory={(_PEAK, "elu1"): 100.0})
    for width in WIDTHS:
        for num_events in LENGTHS:
            for backward in (False, True):
                cell = Cell(width, num_events, backward)
                scaled = {name: 1e-6 * num_events * x for name, x in times.items()}
                # So fast a matrix product that all is half as fast as its floor.
                gemm = 2 * 1024**3 * scaled["mapped"] / 2 / cell.floor_flops
                scaled["gemm"] = gemm
                results.cells[cell] = {
                    name: Seconds(x, x, FEWEST_RUNS) for name, x in scaled.items()
                }
    for num_events in (1024, 4096, 16384):
        step = {"linear": 1.0, "softmax": 9.0}
        results.training_steps[num_events] = {
            name: Seconds(x, x, FEWEST_RUNS) for name, x in step.items()
        }
    return results


def verdicts(results: Results) -> dict[str, str]:
    return {f"{bar.name} {bar.need}": bar.verdict for bar in bars(results)}


def test_a_good_run_passes_every_bar() -> None:
    assert set(verdicts(run_of(_GOOD)).values()) == {"PASS"}


def test_one_slow_cell_misses_the_bars_that_cover_it_and_no_other() -> None:
    results = run_of(_GOOD)
    slow = results.cells[Cell(32, 16384, backward=False)]
    slow["fast_transformers"] = Seconds(1.19 * slow["elu1"].median, 0.0, FEWEST_RUNS)
    missed = [bar for bar in bars(results) if bar.verdict == "FAIL"]
    assert [bar.name for bar in missed] == [
        "times as fast as fast-transformers, D = 32, N >= 1,024"
    ]
    assert missed[0].worst is not None
    assert missed[0].worst[0] == "N = 16,384 forward"


def test_a_peer_that_is_not_installed_passes_nothing_and_fails_nothing() -> None:
    without = {name: x for name, x in _GOOD.items() if name != "fast_transformers"}
    found = verdicts(run_of(without))
    of_peer = [name for name in found if "fast-transformers" in name]
    assert len(of_peer) == len(WIDTHS)
    assert {found.pop(name) for name in of_peer} == {"not installed"}
    assert set(found.values()) == {"PASS"}


def test_bars_of_cells_that_were_not_run_are_not_listed() -> None:
    everything = run_of(_GOOD)
    cell = Cell(64, 256, backward=True)
    results = Results(cells={cell: everything.cells[cell]})
    assert [bar.name for bar in bars(results)] == [
        "times as fast as SDPA, D = 64, N = 256"
    ]


def test_upper_bars_are_missed_from_above() -> None:
    results = run_of(_GOOD)
    results.memory[_PEAK, "elu1"] = 141.0
    missed = [bar.name for bar in bars(results) if bar.verdict == "FAIL"]
    assert missed == ["peak MB above inputs, D = 64, N = 16,384"]
    assert Bar("x", 140.0, at_least=False, found={"here": 140.0}).verdict == "PASS"


def test_growing_time_per_token_is_told() -> None:
    results = run_of(_GOOD)
    long = results.cells[Cell(16, 65536, backward=True)]
    long.update({x: Seconds(2 * s.median, 0.0, 5) for x, s in long.items()})
    missed = [bar.name for bar in bars(results) if bar.verdict == "FAIL"]
    assert missed == ["time per token at 65,536 over that at 4,096, D = 16"]


def test_forms_run_in_turn_and_slow_ones_sit_out_after_enough_runs() -> None:
    calls: list[str] = []

    def form(name: str, seconds: float) -> Timed:
        def run() -> float:
            calls.append(name)
            return seconds

        return run

    forms = {"ours": form("ours", 1.0), "slow": form("slow", 9.0)}
    taken = in_turn(forms, budget=0.02)
    assert calls[:6] == ["ours", "slow", "slow", "ours", "ours", "slow"]
    assert taken["slow"] == Seconds(9.0, 9.0, FEWEST_RUNS)
    assert taken["ours"].runs > FEWEST_RUNS
