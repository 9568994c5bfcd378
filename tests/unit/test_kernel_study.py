"""The study of kernels: its estimators, its copies of weights, its recall task."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from infoset.models.attention import Favor, feature_map
from infoset.models.attention_forecaster import AttentionForecaster
from infoset.models.forecasts import LEVELS
from infoset.models.kernels import LinearKernel, SoftmaxKernel
from infoset.models.settings import NetworkSize, Training
from infoset.pipeline.config import ExecutorOptions, load_experiment
from infoset.pipeline.preparation import load_log, prepare
from infoset.pipeline.studies.attention_calls import AttentionCall, attention_calls
from infoset.pipeline.studies.fixed_steps import mean_loss, train_steps, untrained
from infoset.pipeline.studies.fixed_width import (
    least_forgotten,
    one_hot_forgotten,
    softmax_forgotten,
)
from infoset.pipeline.studies.kernel_errors import (
    kernel_error,
    measured_kernel_error,
    measured_ratio_error,
    pooled_ratio_error,
    ratio_error,
    relative_deviation,
)
from infoset.pipeline.studies.kernel_replacement import (
    EqualWeights,
    Replacement,
    copy_weights,
    forecast_drift,
    replaced,
)
from infoset.pipeline.studies.kernel_settings import (
    KernelSettings,
    RecallSettings,
    kernel_settings,
)
from infoset.pipeline.studies.recall import (
    RecallModel,
    draw_pairs,
    recall_accuracies,
    recall_kernel,
)
from infoset.pipeline.studies.trained_softmax import studied, thinned, trained_softmax
from infoset.pipeline.studies.workers import workers
from infoset.pipeline.walk_forward import fold_data

MAPS = RecallSettings().maps
WIDTH = 8


def made_call(*, size: float = 0.6, num_rows: int = 24) -> AttentionCall:
    """Make queries, keys and values; the second sequence is shorter by five rows."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (
        size * torch.randn(2, 2, num_rows, WIDTH, generator=generator) for _ in range(3)
    )
    mask = torch.ones(2, num_rows, dtype=torch.bool)
    mask[1, -5:] = False
    return AttentionCall("made", q, k, v, mask, None, causal=True)


def draws(num_features: int, number: int) -> list[Favor]:
    return [Favor(WIDTH, num_features, num_heads=2, seed=s) for s in range(number)]


# --- kernel errors ----------------------------------------------------------------


def test_the_kernel_error_falls_as_one_over_the_root_of_the_features() -> None:
    call = made_call()
    found = [measured_kernel_error(call, draws(r, 12)).typical for r in (16, 64, 256)]
    assert found[0] / found[1] == pytest.approx(2, rel=0.15)
    assert found[1] / found[2] == pytest.approx(2, rel=0.15)


def test_the_spread_of_an_entry_is_the_one_that_theory_gives() -> None:
    # One feature has nothing to be orthogonal to: lemma 2 holds exactly.
    call = made_call(size=0.25)
    expected = relative_deviation(call, 1)[call.pairs()].square().mean().sqrt()
    found = measured_kernel_error(call, draws(1, 800))
    assert found.rms == pytest.approx(float(expected), rel=0.1)
    assert abs(found.bias) < 4 * found.bias_error


def test_pairs_that_no_draw_reaches_are_counted() -> None:
    relative = np.zeros((3, 4))
    found = kernel_error(relative, np.array([0.1, 0.9, 1.1, 30.0]))
    assert found.out_of_reach == 0.5


def test_a_query_reads_neither_the_future_nor_padding() -> None:
    pairs = made_call().pairs()
    assert not pairs.triu(1).any()
    assert pairs[0].diagonal(dim1=-2, dim2=-1).all()
    assert not pairs[1, :, -5:].any()
    assert not pairs[1, :, :, -5:].any()
    whole = replace(made_call(), causal=False).pairs()
    assert whole[0].all()
    assert not whole[1, :, :, -5:].any()


# --- ratio errors -----------------------------------------------------------------


def test_the_squared_bias_is_that_of_the_mean_less_the_variance_of_the_mean() -> None:
    exact = np.array([[1.0]])
    estimates = np.array([[[1.2]], [[1.4]], [[1.3]]])
    found = ratio_error(exact, estimates)
    # By hand: the mean error is 0.3 and its variance over draws 0.01.
    assert found.squared_bias == pytest.approx(0.09 - 0.01 / 3)
    assert found.spread**2 == pytest.approx(0.01)
    assert found.error**2 == pytest.approx((0.04 + 0.16 + 0.09) / 3)
    assert found.error**2 == pytest.approx(found.squared_bias + found.spread**2)
    # Leaving out one draw: 0.35^2 - 0.005/2, 0.25^2 - 0.005/2, 0.3^2 - 0.02/2.
    left = np.array([0.12, 0.06, 0.08])
    by_hand = np.sqrt(2 / 3 * np.sum((left - left.mean()) ** 2))
    assert found.squared_bias_error == pytest.approx(by_hand)


def test_errors_are_relative_to_the_size_of_the_exact_output() -> None:
    random = np.random.default_rng(0)
    exact, estimates = random.normal(size=(5, 2)), random.normal(size=(4, 5, 2))
    one, ten = ratio_error(exact, estimates), ratio_error(10 * exact, 10 * estimates)
    assert ten.error == pytest.approx(one.error)
    assert ten.squared_bias == pytest.approx(one.squared_bias)


def test_noise_alone_shows_no_clear_bias_and_a_shift_does() -> None:
    random = np.random.default_rng(0)
    exact = np.ones((200, 2))
    noisy = exact + random.normal(size=(30, 200, 2))
    assert ratio_error(exact, noisy).bias is None
    assert ratio_error(exact, noisy).bias_bound < 0.1
    shifted = ratio_error(exact, noisy + 0.5)
    assert shifted.bias is not None
    assert shifted.bias == pytest.approx(0.5, abs=0.05)


def test_unbiased_entries_give_a_biased_ratio_whose_bias_falls() -> None:
    call = made_call(size=0.7)
    kernels, ratios = zip(
        *(
            (measured_kernel_error(call, maps), measured_ratio_error(call, maps))
            for maps in (draws(8, 60), draws(64, 60))
        ),
        strict=True,
    )
    for kernel in kernels:
        assert abs(kernel.bias) < 3 * kernel.bias_error
    assert ratios[0].bias is not None
    assert ratios[0].bias > 5 * ratios[0].bias_error
    assert (ratios[1].bias or ratios[1].bias_bound) < ratios[0].bias / 2


def test_equal_weights_have_bias_alone_and_give_the_mean_of_what_was_seen() -> None:
    call = made_call()
    found = measured_ratio_error(call, [EqualWeights()] * 3)
    assert found.spread == pytest.approx(0, abs=1e-6)
    assert found.bias == pytest.approx(found.error)
    y = call.outputs(LinearKernel(EqualWeights()))
    last = y[:48].reshape(24, 2, WIDTH)[-1]
    torch.testing.assert_close(last, call.v[0].mean(dim=1))


def test_layers_are_pooled_by_their_squares() -> None:
    random = np.random.default_rng(1)
    layers = [
        ratio_error(np.ones((9, 1)), random.normal(mean, 1, (5, 9, 1)))
        for mean in (1, 2)
    ]
    pooled = pooled_ratio_error(layers)
    squares = [layer.error**2 for layer in layers]
    assert pooled.error**2 == pytest.approx(np.mean(squares))
    assert pooled.error**2 == pytest.approx(pooled.squared_bias + pooled.spread**2)


def test_fewer_than_three_draws_are_refused() -> None:
    with pytest.raises(ValueError, match=r"at least 3 draws .* got 2\. Raise study\."):
        ratio_error(np.ones((4, 1)), np.ones((2, 4, 1)))
    with pytest.raises(ValueError, match=r"at least 3 draws .* got 1\."):
        kernel_error(np.ones((1, 4)), np.ones(4))


def test_outputs_without_a_size_are_refused() -> None:
    with pytest.raises(ValueError, match=r"must not all be zero; got 4 rows of zeros"):
        ratio_error(np.zeros((4, 1)), np.ones((3, 4, 1)))


# --- a trained forecaster ---------------------------------------------------------


@pytest.fixture(scope="module")
def smoke() -> Any:
    experiment, base = load_experiment("smoke", ["history_lengths=[]"])
    prepared = prepare(experiment, load_log(experiment, base))
    samples = prepared.samples[str(experiment.history)]
    data = fold_data(studied(experiment, KernelSettings()), samples, prepared.folds[0])
    return SimpleNamespace(experiment=experiment, prepared=prepared, data=data)


def new_forecaster(smoke: Any) -> AttentionForecaster:
    size = NetworkSize(width=8, num_layers=1, num_heads=2, dropout=0.1)
    training = Training(learning_rate=0.01, batch_size=32)
    forecaster = AttentionForecaster("softmax", size=size, training=training)
    return untrained(forecaster, smoke.data.train, smoke.data.validation)


def stepped(
    forecaster: AttentionForecaster, smoke: Any, **settings: Any
) -> dict[str, Tensor]:
    train_steps(forecaster, smoke.data.train, smoke.data.validation, **settings)
    return weights_of(forecaster)


def weights_of(forecaster: AttentionForecaster) -> dict[str, Tensor]:
    assert forecaster.network is not None
    return {k: v.clone() for k, v in forecaster.network.state_dict().items()}


@pytest.fixture(scope="module")
def softmax(smoke: Any) -> AttentionForecaster:
    forecaster = new_forecaster(smoke)
    stepped(forecaster, smoke, num_steps=60, seed=0)
    return forecaster


def test_the_untrained_network_is_the_plain_baseline_and_steps_move_it(
    smoke: Any, softmax: AttentionForecaster
) -> None:
    before = weights_of(new_forecaster(smoke))
    assert not before["head.adjust.weight"].any()
    after = weights_of(softmax)
    assert after["head.adjust.weight"].any()
    start = mean_loss(new_forecaster(smoke), smoke.data.train)
    assert mean_loss(softmax, smoke.data.train) < start


def test_the_same_seed_takes_the_same_steps(
    smoke: Any, softmax: AttentionForecaster
) -> None:
    again = stepped(new_forecaster(smoke), smoke, num_steps=60, seed=0)
    for name, weight in weights_of(softmax).items():
        assert torch.equal(weight, again[name]), name


def test_a_batch_in_parts_takes_the_steps_of_a_whole_batch(smoke: Any) -> None:
    whole, parts = (
        stepped(
            new_forecaster(smoke),
            smoke,
            num_steps=4,
            seed=3,
            rows_at_once=rows,
            with_dropout=False,
        )
        for rows in (None, 8)
    )
    for name, weight in whole.items():
        torch.testing.assert_close(weight, parts[name], rtol=1e-4, atol=1e-5)


def test_every_weight_is_copied_exactly_and_the_original_stays(
    softmax: AttentionForecaster,
) -> None:
    before = weights_of(softmax)
    favor = replaced(softmax, Replacement("favor", 16), seed=0)
    copied = weights_of(favor)
    own = {name for name in copied if name not in before}
    assert own == {
        "blocks.0.kernel.feature_map.projection",
        "readout.kernel.feature_map.projection",
    }
    for name, weight in before.items():
        assert torch.equal(weight, copied[name]), name
    assert favor.attention == "linear"
    assert favor.linear.num_features == 16
    after = weights_of(softmax)
    assert all(torch.equal(weight, after[name]) for name, weight in before.items())


def test_a_favor_forecaster_of_the_same_seed_has_the_same_directions(
    smoke: Any, softmax: AttentionForecaster
) -> None:
    favor = replaced(softmax, Replacement("favor", 16), seed=5)
    fresh = AttentionForecaster(
        "linear", linear=favor.linear, size=softmax.size, training=Training(), seed=5
    )
    untrained(fresh, smoke.data.train, smoke.data.validation)
    name = "readout.kernel.feature_map.projection"
    assert torch.equal(weights_of(favor)[name], weights_of(fresh)[name])


def test_networks_that_differ_elsewhere_are_refused(
    softmax: AttentionForecaster,
) -> None:
    favor = replaced(softmax, Replacement("favor", 4), seed=0)
    assert favor.network is not None
    weights = weights_of(softmax)
    del weights["query.bias"]
    with pytest.raises(ValueError, match=r"directions alone; got .* in query\.bias\."):
        copy_weights(weights, favor.network)


def test_softmax_in_the_place_of_softmax_changes_no_forecast(
    smoke: Any, softmax: AttentionForecaster
) -> None:
    twin = replaced(softmax, Replacement("softmax"), seed=0)
    exact = softmax.forecast(smoke.data.test).quantiles
    other = twin.forecast(smoke.data.test).quantiles
    np.testing.assert_allclose(other, exact, rtol=1e-5)
    assert forecast_drift(exact, other, LEVELS)["all_quantiles"] < 1e-6


def test_more_features_bring_forecasts_closer(
    smoke: Any, softmax: AttentionForecaster
) -> None:
    exact = softmax.forecast(smoke.data.test).quantiles
    drifts = [
        np.mean(
            [
                forecast_drift(
                    exact,
                    replaced(softmax, Replacement("favor", number), seed)
                    .forecast(smoke.data.test)
                    .quantiles,
                    LEVELS,
                )["all_quantiles"]
                for seed in range(3)
            ]
        )
        for number in (1, 256)
    ]
    assert 0 < drifts[1] < drifts[0] / 2


def test_calls_are_those_of_the_network_itself(
    smoke: Any, softmax: AttentionForecaster
) -> None:
    before = weights_of(softmax)
    calls = attention_calls(softmax, smoke.data.test, num_sets=5)
    assert [call.layer for call in calls] == ["block 0", "readout"]
    assert [call.causal for call in calls] == [True, False]
    block, readout = calls
    assert block.q.shape == (5, 2, 16, 4)
    assert readout.q.shape == (5, 2, 1, 4)
    network = softmax.network
    assert network is not None
    # What the readout adds to its queries, made by hand from its call.
    state = SoftmaxKernel().absorb(
        readout.k, readout.v, mask=readout.mask, decay=readout.decay, state=None
    )
    expected = SoftmaxKernel().read(readout.q, state).flatten(0, 2)
    torch.testing.assert_close(readout.outputs(SoftmaxKernel()), expected)
    assert weights_of(softmax).keys() == before.keys()


def test_empty_information_sets_have_no_calls(
    smoke: Any, softmax: AttentionForecaster
) -> None:
    test = smoke.data.test
    empty = replace(test, stop=test.start.copy())
    with pytest.raises(ValueError, match=r"must hold an event; got none in \d+"):
        attention_calls(softmax, empty, num_sets=3)


def test_drift_is_in_widths_of_the_exact_interval() -> None:
    exact = np.array([[0.0, 1, 2, 3, 4, 6, 10], [0, 1, 2, 3, 4, 6, 20]])
    moved = exact + np.array([[1.0], [4.0]])
    found = forecast_drift(exact, moved, LEVELS)
    assert found["all_quantiles"] == pytest.approx((1 / 10 + 4 / 20) / 2)
    assert found["median"] == pytest.approx((1 / 10 + 4 / 20) / 2)
    with pytest.raises(ValueError, match=r"must have a width; got 0 in row 1\."):
        forecast_drift(np.array([[0.0] * 6 + [1], [0] * 7]), np.zeros((2, 7)), LEVELS)


def test_scored_times_are_spread_evenly_and_keep_all_their_entities(smoke: Any) -> None:
    data = smoke.data
    few = thinned(data, 10)
    times = pd.DatetimeIndex(few.test_points["forecast_time"])
    assert len(times.unique()) == 10
    assert times.min() == data.test_points["forecast_time"].min()
    assert times.max() == data.test_points["forecast_time"].max()
    kept = data.test_points["forecast_time"].isin(times)
    assert len(few.test) == len(few.test_points) == kept.sum()
    assert thinned(data, 10_000) is data


# --- recall -----------------------------------------------------------------------


def made_pairs(num_pairs: int, *, num_sequences: int = 4, seed: int = 0) -> Any:
    return draw_pairs(
        torch.Generator().manual_seed(seed),
        num_sequences=num_sequences,
        num_pairs=num_pairs,
        width=WIDTH,
        num_symbols=4,
    )


def made_model(name: Any) -> RecallModel:
    torch.manual_seed(0)
    return RecallModel(recall_kernel(name, WIDTH, 0), width=WIDTH, num_symbols=4)


def test_questions_are_about_stored_pairs() -> None:
    pairs = made_pairs(20)
    same = (pairs.asked[:, :, None] == pairs.keys[:, None]).all(-1)
    assert torch.equal(same.sum(-1), torch.ones(4, 16, dtype=torch.int64))
    answers = (same * pairs.symbols[:, None]).sum(-1)
    assert torch.equal(answers, pairs.answers)


@pytest.mark.parametrize("name", MAPS)
def test_one_stored_pair_reads_as_its_value_under_every_map(name: Any) -> None:
    model, pairs = made_model(name), made_pairs(1)
    expected = model.answer(model.value(pairs.answers))
    torch.testing.assert_close(model(pairs), expected)
    torch.testing.assert_close(model.along(pairs), expected)


@pytest.mark.parametrize("name", MAPS)
def test_one_stored_pair_is_recalled_by_every_trained_map(name: Any) -> None:
    settings = RecallSettings(
        num_pairs=(1,), width=WIDTH, num_symbols=4, num_steps=60, num_questions=32
    )
    [found] = recall_accuracies(name, 0, settings)
    assert found.accuracy == 1.0


@pytest.mark.parametrize("name", MAPS)
def test_the_state_and_the_causal_pass_answer_alike(name: Any) -> None:
    model, pairs = made_model(name), made_pairs(20)
    torch.testing.assert_close(model(pairs), model.along(pairs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", MAPS)
def test_an_answer_does_not_depend_on_later_pairs(name: Any) -> None:
    model, pairs = made_model(name), made_pairs(12)
    other = made_pairs(12, seed=1)
    keys = torch.cat([pairs.keys[:, :5], other.keys[:, 5:]], dim=1)
    symbols = torch.cat([pairs.symbols[:, :5], other.symbols[:, 5:]], dim=1)
    changed = replace(pairs, keys=keys, symbols=symbols)
    before, after = (model.along(each, after=5) for each in (pairs, changed))
    # favor's running maximum may round the same sums in another way.
    torch.testing.assert_close(before, after, rtol=0, atol=1e-6)
    # Asked after them, an answer does depend on them.
    assert (model.along(pairs) - model.along(changed)).abs().max() > 1e-3


def test_softmax_recalls_what_a_state_of_the_same_width_forgets() -> None:
    settings = RecallSettings(
        num_pairs=(4, 64), width=WIDTH, num_symbols=8, num_steps=150, num_questions=256
    )
    softmax = [cell.accuracy for cell in recall_accuracies("softmax", 0, settings)]
    elu1 = [cell.accuracy for cell in recall_accuracies("elu1", 0, settings)]
    assert softmax[0] > 0.95
    assert softmax[1] > 0.9
    assert elu1[0] > 0.7
    assert elu1[1] < 0.5


def test_recall_repeats_itself_and_seeds_differ() -> None:
    settings = RecallSettings(num_pairs=(8,), width=WIDTH, num_steps=5)
    one = recall_accuracies("elu1", 0, settings)
    assert recall_accuracies("elu1", 0, settings) == one
    assert recall_accuracies("elu1", 1, settings)[0].accuracy != one[0].accuracy


# --- the bound that needs no training ---------------------------------------------


@pytest.mark.parametrize(("num_pairs", "num_features"), [(8, 8), (16, 8), (64, 8)])
def test_one_hot_keys_forget_exactly_what_the_width_demands(
    num_pairs: int, num_features: int
) -> None:
    expected = 1 - num_features / num_pairs
    assert least_forgotten(num_pairs, num_features) == pytest.approx(expected)
    found = one_hot_forgotten(num_pairs, num_features)
    assert found == pytest.approx(expected, abs=1e-6)


def test_fewer_pairs_than_features_need_not_be_forgotten() -> None:
    assert least_forgotten(5, 8) == 0.0
    assert one_hot_forgotten(5, 8) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("name", ["elu1", "relu", "squared_relu", "hedgehog", "favor"])
def test_no_map_and_no_keys_forget_less_than_the_bound(name: str) -> None:
    num_features = 2 * WIDTH if name == "hedgehog" else WIDTH
    kernel = LinearKernel(feature_map(name, width=WIDTH))
    for seed in range(5):
        generator = torch.Generator().manual_seed(seed)
        keys = 3 * torch.randn(1, 1, 24, WIDTH, generator=generator)
        values = torch.eye(24)[None, None]
        with torch.inference_mode():
            state = kernel.absorb(keys, values, mask=None, decay=None, state=None)
            wrong = kernel.read(keys, state) - values
        error = float(wrong.square().sum(-1).mean())
        assert error >= least_forgotten(24, num_features) - 1e-5


def test_softmax_forgets_nothing_at_any_number_of_pairs() -> None:
    assert softmax_forgotten(256, WIDTH) < 1e-6


# --- settings ---------------------------------------------------------------------


def test_overrides_of_the_study_and_of_the_experiment_are_told_apart() -> None:
    settings, others = kernel_settings(
        ["study.num_features=[8]", "network.width=8", "study.recall.num_steps=7"]
    )
    assert settings.num_features == (8,)
    assert settings.recall.num_steps == 7
    assert others == ["network.width=8"]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("study.num_feature=[8]", r"^study has no key 'num_feature'\. Did you mean"),
        ("study.num_features=[]", r"^study\.num_features must not be empty"),
        ("study.num_features=[0]", r"^study\.num_features\.0 must be greater than"),
        ("study.error_seeds=2", r"^study\.error_seeds must be greater than or equal"),
        (
            "study.recall.maps=[elu]",
            r"^study\.recall\.maps\.0 must be one of 'softmax'",
        ),
        ("study.recall.num_steps", r"^--set must read path\.to\.key=value"),
    ],
)
def test_wrong_settings_of_the_study_are_refused_by_their_place(
    override: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        kernel_settings([override])


def test_large_features_are_drawn_less_often_but_more_than_once() -> None:
    settings = KernelSettings(forecast_seeds=5)
    assert [settings.num_draws(r) for r in (16, 256, 512, 4096)] == [5, 5, 2, 2]
    assert KernelSettings(forecast_seeds=1).num_draws(1024) == 1


def test_a_history_without_a_length_is_refused() -> None:
    endless, _ = load_experiment("smoke", ["history=all"])
    with pytest.raises(ValueError, match=r"history must be `last: n` .* got all\."):
        studied(endless, KernelSettings())


def test_the_scale_is_constant_unless_the_causal_one_is_asked_for(smoke: Any) -> None:
    samples = smoke.prepared.samples[str(smoke.experiment.history)]
    spreads = []
    for settings in (KernelSettings(), KernelSettings(causal_scale=True)):
        experiment = studied(smoke.experiment, settings)
        test = fold_data(experiment, samples, smoke.prepared.folds[0]).test
        spreads.append(np.ptp(test.scale) / test.scale.mean())
    assert spreads[0] < 1e-6
    assert spreads[1] > 0.1


def test_a_fold_that_does_not_exist_is_refused(smoke: Any) -> None:
    settings = KernelSettings(fold=9)
    with pytest.raises(
        ValueError, match=r"study\.fold must be one of 0 to \d+; got 9\."
    ):
        trained_softmax(smoke.experiment, smoke.prepared, settings)


# --- workers ----------------------------------------------------------------------


def _squares(numbers: Sequence[int]) -> list[int]:
    return [number**2 for number in numbers]


def test_parts_run_here_with_one_thread_and_give_the_threads_back() -> None:
    threads = torch.get_num_threads()
    with workers(ExecutorOptions(kind="serial"), preload=[]) as pool:
        assert pool.submit(_squares, [2, 3]).result() == [4, 9]
        assert pool.submit(torch.get_num_threads).result() == 1
    assert torch.get_num_threads() == threads


def kill_a_worker() -> None:
    options = ExecutorOptions(kind="processes", num_workers=1)
    with workers(options, preload=[]) as pool:
        assert pool.submit(abs, -3).result() == 3
        pool.submit(os._exit, 1).result()


@pytest.mark.slow
def test_a_worker_that_dies_is_told_and_nobody_waits() -> None:
    with pytest.raises(ChildProcessError, match=r"a worker process must not die; one"):
        kill_a_worker()
