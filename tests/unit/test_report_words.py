"""The report's sentences: never more than the numbers carry."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from infoset.pipeline.report.clocks import (
    available_words,
    dated_words,
    source_clocks,
)
from infoset.pipeline.report.differences import (
    Difference,
    difference_sentence,
    outcome,
)
from infoset.pipeline.report.numbers import (
    count,
    day,
    duration,
    finite,
    memory,
    p_text,
    p_value,
    percent,
    plain,
    round_duration,
    signed_percent,
    significant,
    started,
)
from infoset.pipeline.report.records import short_fold_note
from infoset.pipeline.report.speed import Timing, latency_verdict, ratio_interval
from infoset.pipeline.report.training import Fit, Training, by_fold, trainings
from infoset.pipeline.report.words import (
    attention_verdict,
    baseline_verdict,
    certificate_sentence,
    listing,
    overlap_sentence,
    seed_sentence,
)

NAN = math.nan


def spaces(text: str) -> str:
    """Return the text with ordinary spaces and signs, as it is typed here."""
    return text.replace("\N{NO-BREAK SPACE}", " ").replace("\N{MINUS SIGN}", "-")


def difference(
    mean: float,
    low: float,
    high: float,
    p: float,
    *,
    other_loss: float = 0.25,
    undefined: str | None = None,
) -> Difference:
    return Difference("linear", "ewma", mean, low, high, p, other_loss, undefined)


BETTER = difference(-0.003, -0.005, -0.001, 0.004)
WORSE = difference(0.003, 0.001, 0.005, 0.004)
UNCLEAR = difference(-0.001, -0.003, 0.001, 0.31)
ONLY_THE_TEST = difference(-0.003, -0.006, 0.0001, 0.04)
ONLY_THE_INTERVAL = difference(-0.003, -0.006, -0.0001, 0.07)
UNDEFINED = difference(0.001, NAN, NAN, NAN, undefined="12 times are too few")
IDENTICAL = difference(-4e-9, -9e-9, 2e-9, 0.012)
EQUAL = difference(0.0, NAN, NAN, NAN, undefined="no difference")
NO_INTERVAL = difference(-0.003, NAN, NAN, 0.004, undefined="too few blocks")


@pytest.mark.parametrize(
    ("given_difference", "expected"),
    [
        (BETTER, "better"),
        (WORSE, "worse"),
        (UNCLEAR, "unclear"),
        (ONLY_THE_TEST, "disputed"),
        (ONLY_THE_INTERVAL, "disputed"),
        (UNDEFINED, "undefined"),
        (NO_INTERVAL, "better"),
        (IDENTICAL, "identical"),
        (EQUAL, "identical"),
        # The mean is rounding, but the days differ: that is not the same forecaster.
        (difference(1e-9, -0.002, 0.002, 0.99), "unclear"),
        (difference(-1e-6, -2e-6, -3e-7, 0.001), "better"),
        (difference(0.0, NAN, NAN, NAN, other_loss=NAN), "undefined"),
    ],
)
def test_a_difference_is_claimed_only_where_test_and_interval_agree(
    given_difference: Difference, expected: str
) -> None:
    assert outcome(given_difference) == expected


def test_a_better_forecaster_is_said_to_beat_by_percent_of_the_loss() -> None:
    assert spaces(difference_sentence(BETTER)) == (
        "linear beats ewma: its loss is 1.2 % lower (95 % interval 2.0 % lower to "
        "0.40 % lower; p = 0.004), more than luck explains."
    )


def test_a_worse_forecaster_is_said_to_lose() -> None:
    assert spaces(difference_sentence(WORSE)) == (
        "linear loses to ewma: its loss is 1.2 % higher (95 % interval 0.40 % higher "
        "to 2.0 % higher; p = 0.004), more than luck explains."
    )


def test_a_difference_within_luck_is_said_to_be_that() -> None:
    assert spaces(difference_sentence(UNCLEAR)) == (
        "linear cannot be told from ewma: its loss is 0.40 % lower (95 % interval "
        "1.2 % lower to 0.40 % higher; p = 0.31), within what luck explains."
    )


def test_a_disputed_difference_names_the_disagreement() -> None:
    text = difference_sentence(ONLY_THE_TEST)
    assert "edge of luck" in text
    assert "the test and the interval disagree" in text


def test_an_undefined_difference_gives_the_reason() -> None:
    assert difference_sentence(UNDEFINED) == (
        "linear and ewma cannot be tested against each other: 12 times are too few."
    )


def test_a_difference_of_rounding_is_no_tie_to_test_but_the_same() -> None:
    for same in (IDENTICAL, EQUAL):
        assert difference_sentence(same) == (
            "linear is identical to ewma: their losses differ by less than a "
            "millionth, which is rounding."
        )


def test_a_small_difference_is_not_rounded_to_none() -> None:
    text = spaces(difference_sentence(difference(4e-6, -5e-5, 1e-4, 0.9)))
    assert "its loss is less than 0.01 % higher (95 % interval 0.02 % lower" in text


def test_an_undefined_interval_beside_a_defined_test_gives_the_reason() -> None:
    text = spaces(difference_sentence(NO_INTERVAL))
    assert "(95 % interval undefined, too few blocks; p = 0.004)" in text


def test_without_a_loss_to_compare_with_the_difference_has_its_own_unit() -> None:
    text = difference_sentence(
        difference(-0.003, -0.005, -0.001, 0.004, other_loss=0.0)
    )
    assert "its loss is 0.0030 lower" in text
    assert "%" not in spaces(text).replace("95 %", "")


numbers = st.floats(-0.1, 0.1)


@given(numbers, numbers, numbers, st.floats(0, 1))
def test_no_sentence_claims_more_than_luck_unless_p_and_interval_do(
    mean: float, a: float, b: float, p: float
) -> None:
    low, high = sorted((a, b))
    text = difference_sentence(difference(mean, low, high, p))
    claims = "more than luck explains" in text
    is_rounding = max(map(abs, (mean, low, high))) <= 0.25e-6
    assert claims == (p < 0.05 and (low > 0 or high < 0) and not is_rounding)
    assert (" beats " in text) == (claims and mean < 0)


@pytest.mark.parametrize(
    ("given_difference", "answer", "tone"),
    [
        (BETTER, "Yes", "good"),
        (WORSE, "No", "bad"),
        (UNCLEAR, "Not shown", "neutral"),
        (ONLY_THE_TEST, "Not settled", "neutral"),
        (UNDEFINED, "Undefined", "neutral"),
        (IDENTICAL, "Identical", "neutral"),
        (None, "Not tried", "neutral"),
    ],
)
def test_the_baseline_question_has_an_answer_in_every_case(
    given_difference: Difference | None, answer: str, tone: str
) -> None:
    verdict = baseline_verdict(given_difference, baseline="ewma", num_attention=1)
    assert (verdict.answer, verdict.tone) == (answer, tone)


def test_without_a_baseline_there_is_nothing_to_beat() -> None:
    verdict = baseline_verdict(None, baseline=None, num_attention=2)
    assert verdict.answer == "No baseline"


def test_the_best_of_several_is_named_as_such() -> None:
    two = baseline_verdict(BETTER, baseline="ewma", num_attention=2)
    assert two.text.startswith("The better of two attention forecasters, linear, beats")
    four = baseline_verdict(BETTER, baseline="ewma", num_attention=4)
    assert four.text.startswith("The best of 4 attention forecasters, linear, beats")


def test_a_better_forecaster_of_another_kind_is_not_hidden() -> None:
    for found, doubt in (
        (BETTER, ""),
        (UNCLEAR, ", which cannot be told from ewma either"),
        (ONLY_THE_TEST, ", which cannot be told from ewma either"),
    ):
        leader = replace(found, name="boosting")
        verdict = baseline_verdict(
            BETTER, baseline="ewma", num_attention=1, leader=leader
        )
        lowest = f"The lowest loss of all is that of boosting{doubt}."
        assert verdict.text.endswith(lowest)


@pytest.mark.parametrize(
    ("given_difference", "answer"),
    [
        (BETTER, "Better"),
        (WORSE, "Worse"),
        (UNCLEAR, "No difference shown"),
        (ONLY_THE_INTERVAL, "Not settled"),
        (UNDEFINED, "Undefined"),
        (IDENTICAL, "Identical"),
        (None, "Not compared"),
    ],
)
def test_linear_against_softmax_has_an_answer_in_every_case(
    given_difference: Difference | None, answer: str
) -> None:
    assert attention_verdict(given_difference).answer == answer


def test_no_difference_shown_is_not_sold_as_equality() -> None:
    text = spaces(attention_verdict(UNCLEAR).text)
    assert text.endswith(
        "That is no proof of equality: by the interval their losses can still differ "
        "by 1.2 %."
    )


def trained(name: str, *kept: int, seeds: int = 1) -> Training:
    """Return a training whose fits kept these steps, fold by fold."""
    fits = [Fit(at // seeds, at % seeds, step, 150) for at, step in enumerate(kept)]
    return Training(name, tuple(fits))


@pytest.mark.parametrize(
    ("training", "sentence"),
    [
        (
            trained("linear", 0, 50, 75, 0, 150),
            "In 2 of 5 folds no training step of linear improved the validation loss: "
            "there its forecasts are those it started from, the scaled quantiles.",
        ),
        (
            trained("linear", 0, 0),
            "In all 2 folds no training step of linear improved the validation loss: "
            "its forecasts are those it started from, the scaled quantiles.",
        ),
        (
            trained("linear", 0),
            "In the only fold no training step of linear improved the validation loss: "
            "its forecasts are those it started from, the scaled quantiles.",
        ),
        (
            trained("linear", 25, 50),
            "In all 2 folds training improved the validation loss of linear.",
        ),
        (
            trained("linear", 0, 50, 75, 25, seeds=2),
            "In 1 of 4 fits (2 folds, 2 seeds) no training step of linear improved the "
            "validation loss: there its forecasts are those it started from, the "
            "scaled quantiles.",
        ),
    ],
)
def test_training_that_helped_nothing_is_told(
    training: Training, sentence: str
) -> None:
    assert training.sentence == sentence


def test_a_forecaster_that_learned_nothing_is_not_called_better() -> None:
    both = [trained("linear", 0, 0), trained("softmax", 0, 0)]
    verdict = baseline_verdict(
        IDENTICAL, baseline="ewma", num_attention=2, trainings=both
    )
    assert (verdict.answer, verdict.tone) == ("Untrained", "neutral")
    assert verdict.text == (
        "In no fold did a training step of linear and softmax improve the validation "
        "loss: their forecasts are those they started from, the scaled quantiles. "
        "linear is identical to ewma: their losses differ by less than a millionth, "
        "which is rounding."
    )
    one = baseline_verdict(
        BETTER,
        baseline="ewma",
        num_attention=2,
        trainings=[trained("linear", 0, 0), trained("softmax", 5, 0)],
    )
    assert one.answer == "Untrained"
    assert one.text.startswith("In all 2 folds no training step of linear improved")


def test_training_that_helped_in_some_folds_stands_beside_the_verdict() -> None:
    verdict = baseline_verdict(
        BETTER,
        baseline="ewma",
        num_attention=1,
        trainings=[trained("linear", 0, 50)],
    )
    assert verdict.answer == "Yes"
    assert "In 1 of 2 folds no training step of linear improved" in verdict.text


def test_attention_that_was_not_trained_is_not_compared_as_if_it_were() -> None:
    linear, softmax = trained("linear", 0, 0), trained("softmax", 50, 0)
    verdict = attention_verdict(UNCLEAR, [linear, softmax])
    assert (verdict.answer, verdict.tone) == ("Untrained", "neutral")
    assert verdict.text.startswith("In all 2 folds no training step of linear")
    assert attention_verdict(UNCLEAR, [softmax]).answer == "No difference shown"


def test_training_is_read_from_the_record_at_the_main_history() -> None:
    row = {"forecaster": "linear", "seed": 0, "last_step": 12}
    rows = [
        row | {"history": "last 8", "fold": 0, "kept_step": 4},
        row | {"history": "last 16", "fold": 0, "kept_step": 0},
        row | {"history": "last 16", "fold": 1, "kept_step": 8},
    ]
    [found] = trainings({"training": rows}, "last 16")
    assert found == Training("linear", (Fit(0, 0, 0, 12), Fit(1, 0, 8, 12)))
    assert by_fold([found]) == [(0, [[Fit(0, 0, 0, 12)]]), (1, [[Fit(1, 0, 8, 12)]])]
    assert trainings({}, "last 16") == ()


def timing(length: int, p50: float, other: float, low: float, high: float) -> Timing:
    return Timing(length, "fresh", "linear", "softmax", p50, other, low, high)


def test_latency_names_the_scored_history_first_and_then_the_longest() -> None:
    verdict = latency_verdict(
        timing(64, 2000.0, 2600.0, 1.2, 1.4), timing(4096, 180.0, 90.0, 0.4, 0.6)
    )
    assert verdict.answer == (
        "At 64 events linear 1.3 times as fast; at 4,096 events softmax 2.0 times as "
        "fast"
    )
    assert verdict.tone == "neutral"  # each of them wins once
    long = timing(4096, 90.0, 180.0, 1.9, 2.1)
    assert latency_verdict(timing(64, 2.0, 2.6, 1.2, 1.4), long).tone == "good"
    assert spaces(verdict.text) == (
        "With the scored history, 64 events read anew, a forecast takes linear 2.00 ms "
        "and softmax 2.60 ms (medians): linear is 1.3 times as fast (95 % interval 1.2 "
        "to 1.4). With 4,096 events read anew a forecast takes linear 180 µs and "
        "softmax 90.0 µs (medians): softmax is 2.0 times as fast (95 % interval 1.7 to "
        "2.5)."
    )


def test_a_speed_up_that_noise_could_explain_is_not_claimed() -> None:
    verdict = latency_verdict(timing(64, 100.0, 130.0, 0.9, 1.6), None)
    assert (verdict.answer, verdict.tone) == (
        "At 64 events no difference shown",
        "neutral",
    )
    assert spaces(verdict.text).endswith(
        "they cannot be told apart, for the 95 % interval of their ratio, 0.900 to "
        "1.60, contains 1."
    )
    assert "times as fast" not in verdict.text


def test_a_state_that_is_carried_on_is_named_as_such() -> None:
    carried = Timing(1024, "streaming", "linear", "softmax", 1e3, 2e3, 1.8, 2.2)
    text = spaces(latency_verdict(carried, None).text)
    assert "history, 1,024 events in a state that takes in one more, a forecast" in text


def test_a_slower_linear_forecaster_is_said_to_be_slower() -> None:
    verdict = latency_verdict(timing(64, 300.0, 200.0, 0.6, 0.7), None)
    assert verdict.answer == "At 64 events softmax 1.5 times as fast"
    assert verdict.tone == "bad"


def test_nearly_equal_latencies_are_called_equal_however_well_they_are_known() -> None:
    verdict = latency_verdict(None, timing(64, 100.0, 104.0, 1.03, 1.05))
    assert (verdict.answer, verdict.tone) == ("At 64 events about equal", "neutral")


def test_without_single_times_no_speed_up_is_claimed() -> None:
    verdict = latency_verdict(timing(64, 100.0, 900.0, NAN, NAN), None)
    assert (verdict.answer, verdict.tone) == ("At 64 events not tested", "neutral")
    assert "whether that is more than noise was not measured" in verdict.text


def test_the_interval_of_a_ratio_holds_it_and_shrinks_with_the_noise() -> None:
    generator = np.random.default_rng(5)
    noise = generator.normal(1, 0.05, (2, 200))
    low, high = ratio_interval(100 * noise[0], 150 * noise[1])
    assert 1.4 < low < 1.5 < high < 1.6
    assert ratio_interval(100 * noise[0], 150 * noise[1]) == (low, high)
    exact = ratio_interval(np.full(200, 100.0), np.full(200, 150.0))
    assert exact == (1.5, 1.5)


def test_a_slow_stretch_of_the_machine_makes_no_difference_of_two_forecasters() -> None:
    # Both were timed in turns while the machine slowed down by half.
    machine = np.where(np.arange(200) < 100, 1.0, 1.5)
    generator = np.random.default_rng(5)
    noise = generator.normal(1, 0.02, (2, 200))
    low, high = ratio_interval(100 * machine * noise[0], 100 * machine * noise[1])
    assert low <= 1 <= high


@pytest.mark.parametrize(("num", "num_other"), [(19, 19), (200, 199), (0, 0)])
def test_too_few_or_unpaired_times_have_no_interval(num: int, num_other: int) -> None:
    ends = ratio_interval(np.ones(num), np.ones(num_other))
    assert all(math.isnan(end) for end in ends)


def test_latency_that_was_not_measured_is_not_invented() -> None:
    assert latency_verdict(None, None).answer == "Not measured"


def test_a_certificate_is_read_out_in_every_case() -> None:
    cases = {
        (None, 0, 0): "No certificate was made: this run was not checked",
        (True, 0, 0): "The certificate holds no check: look-ahead was not looked for.",
        (True, 0, 1): "Passed: 1 check found no look-ahead.",
        (False, 1, 3): "Failed: 1 of 3 checks found look-ahead. Do not rely",
        (False, 0, 3): "Failed: it says so. Do not rely",
    }
    for (passed, num_failed, num_checks), words in cases.items():
        text = certificate_sentence(
            passed=passed, num_failed=num_failed, num_checks=num_checks
        )
        assert text.startswith(words)


def test_the_lag_of_the_test_is_explained() -> None:
    assert "published up to 6 forecast times later" in overlap_sentence(6)
    assert "the test allows for 5 lags of that" in overlap_sentence(6)
    assert "the test allows for 1 lag of that" in overlap_sentence(2)
    assert "the test needs no lag" in overlap_sentence(1)


def fold(first: str, last: str, num_times: int) -> dict[str, Any]:
    return {"test_first": first, "test_last": last, "test_dates": num_times}


def test_a_last_test_span_that_is_cut_short_is_remarked() -> None:
    whole = [fold("2016-01-04", "2017-12-29", 502), fold("2018-01-02", "2019-12", 498)]
    short = fold("2020-01-02", "2021-04-29", 335)
    assert short_fold_note({"folds": [*whole, short]}).startswith(
        "The last test span, 2020-01-02 to 2021-04-29, is much shorter than the "
        "others (335 forecast times against 500): "
    )
    for folds in (whole, [short], [], [*whole, short | {"test_dates": 400}]):
        assert short_fold_note({"folds": folds}) == ""


def test_seeds_are_summed_up_by_their_range() -> None:
    text = seed_sentence("linear", [0.2481, 0.2466, NAN])
    assert text == "linear: 0.2466 to 0.2481 over 2 seeds."
    assert seed_sentence("linear", [NAN]) == "linear: undefined for every seed."


def test_long_lists_end_with_a_number() -> None:
    assert listing([]) == ""
    assert listing(["a"]) == "a"
    assert listing(["a", "b", "c"]) == "a, b and c"
    assert listing(list("abcdef")) == "a, b, c, d and 2 more"


def test_undefined_numbers_say_so() -> None:
    for number in (NAN, math.inf):
        assert plain(number) == significant(number) == percent(number) == "undefined"
        assert signed_percent(number) == p_value(number) == "undefined"
        assert count(number) == "undefined"
    assert p_text(NAN) == "p undefined"
    assert duration(NAN) == "not measured"
    assert memory(NAN) == "not measured"
    assert day(None) == "undefined"
    assert math.isnan(finite(None))
    assert math.isnan(finite("1"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (plain(1234.5, 1), "1,234.5"),
        (plain(-0.00001), "0.0000"),
        (significant(0.0), "0"),
        (significant(0.012345), "0.0123"),
        (significant(1_234_567.0), "1,234,567"),
        (significant(0.99951), "1.00"),
        (significant(2.4e-7, 2), "2.4e-07"),
        (signed_percent(1.25), "+1.2 %"),
        (signed_percent(-1.25), "-1.2 %"),
        (signed_percent(-0.001), "0.0 %"),
        (p_text(0.0004), "p < 0.001"),
        (p_text(0.0496), "p = 0.050"),
        (p_text(0.41), "p = 0.41"),
        (duration(85.0), "85.0 µs"),
        (duration(999.6), "1.00 ms"),
        (duration(2_500_000.0), "2.50 s"),
        (round_duration(20.0), "20 µs"),
        (round_duration(10_000.0), "10 ms"),
        (memory(512.0), "512 B"),
        (memory(262_144.0), "262 kB"),
        (memory(5e13), "50,000 GB"),
        (count(9316), "9,316"),
        (day("2012-01-03T22:00:00+00:00"), "2012-01-03"),
        (day("2012-01-03T22:00:00-05:00"), "2012-01-04"),
        (day("soon"), "soon"),
        (started("2026-01-02T03:04:05+01:00"), "2026-01-02 02:04 UTC"),
        (started(0.0), "1970-01-01 00:00 UTC"),
        (started("yesterday evening"), "yesterday evening"),
    ],
)
def test_numbers_are_written_for_people(text: str, expected: str) -> None:
    assert spaces(text) == expected


@pytest.mark.parametrize(
    ("clock", "words"),
    [
        ({"column": "t", "stamp": "instant"}, "the instant in column t"),
        (
            {"column": "t", "stamp": "bar_close", "zone": "UTC"},
            "the close of the bar, in column t (read in UTC where it has no offset)",
        ),
        (
            {"column": "t", "stamp": "bar_open", "bar": "5min"},
            "the close of the bar: 5min after its open in column t",
        ),
        (
            {"column": "d", "stamp": "date", "at": "15:30", "zone": "America/New_York"},
            "the date in column d, at 15:30 America/New_York",
        ),
        (
            {"column": "m", "stamp": "period_end", "zone": "UTC"},
            "the first instant after the period in column m (UTC)",
        ),
        ({}, "not declared"),
    ],
)
def test_the_clock_of_an_event_is_said_in_words(
    clock: dict[str, Any], words: str
) -> None:
    assert dated_words(clock) == words


@pytest.mark.parametrize(
    ("clock", "words"),
    [
        ({"column": "t", "zone": None, "at": None}, "the instant in column t"),
        (
            {"column": "d", "zone": "UTC", "at": "08:30"},
            "the date in column d, at 08:30 UTC",
        ),
        (
            {"sessions": 1, "calendar": "XNYS", "at": "16:15", "zone": "UTC"},
            "1 session later at 16:15 UTC (calendar XNYS)",
        ),
        ({"days": 0, "at": "17:00", "zone": "UTC"}, "the same day at 17:00 UTC"),
        ({"days": 7, "at": "17:00", "zone": "UTC"}, "7 days later at 17:00 UTC"),
        ({"lag": "0s"}, "at once"),
        ({"lag": "90min"}, "90min later"),
        ({}, "not declared"),
    ],
)
def test_the_clock_of_availability_is_said_in_words(
    clock: dict[str, Any], words: str
) -> None:
    assert available_words(clock) == words


def test_a_source_tells_its_file_its_entities_and_its_assumptions() -> None:
    clocks = source_clocks(
        {"path": None, "sample": "a.csv", "entity": "*", "stream": "s"}
    )
    assert (clocks.file, clocks.entity, clocks.assumptions) == ("a.csv", "*", ())
    own = source_clocks({"entity": {"column": "ticker"}, "assumptions": ["x", "y"]})
    assert (own.file, own.entity) == ("given from Python", "column ticker")
    assert own.assumptions == ("x", "y")
