"""The report's sentences: never more than the numbers carry."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infoset.pipeline.report.clocks import (
    available_words,
    dated_words,
    source_clocks,
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
from infoset.pipeline.report.words import (
    Difference,
    Timing,
    attention_verdict,
    baseline_verdict,
    certificate_sentence,
    difference_sentence,
    latency_verdict,
    listing,
    outcome,
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
UNDEFINED = difference(0.0, NAN, NAN, NAN, undefined="no difference")
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
        "linear and ewma cannot be tested against each other: no difference."
    )


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
    assert claims == (p < 0.05 and (low > 0 or high < 0))
    assert (" beats " in text) == (claims and mean < 0)


@pytest.mark.parametrize(
    ("given_difference", "answer", "tone"),
    [
        (BETTER, "Yes", "good"),
        (WORSE, "No", "bad"),
        (UNCLEAR, "Not shown", "neutral"),
        (ONLY_THE_TEST, "Not settled", "neutral"),
        (UNDEFINED, "Undefined", "neutral"),
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
    verdict = baseline_verdict(
        BETTER, baseline="ewma", num_attention=1, leader="boosting"
    )
    assert verdict.text.endswith("The lowest loss of all is that of boosting.")
    alone = baseline_verdict(BETTER, baseline="ewma", num_attention=1, leader="linear")
    assert "lowest loss of all" not in alone.text


@pytest.mark.parametrize(
    ("given_difference", "answer"),
    [
        (BETTER, "Better"),
        (WORSE, "Worse"),
        (UNCLEAR, "No difference shown"),
        (ONLY_THE_INTERVAL, "Not settled"),
        (UNDEFINED, "Undefined"),
        (None, "Not compared"),
    ],
)
def test_linear_against_softmax_has_an_answer_in_every_case(
    given_difference: Difference | None, answer: str
) -> None:
    assert attention_verdict(given_difference).answer == answer


def test_no_difference_shown_is_not_sold_as_equality() -> None:
    text = spaces(attention_verdict(UNCLEAR).text)
    assert text.endswith("That is no proof of equality: a gap of 1.2 % still fits.")


def test_latency_names_both_workloads_with_their_ratios() -> None:
    verdict = latency_verdict(
        Timing(1024, "linear", "softmax", 180.0, 720.0),
        Timing(1024, "linear", "softmax", 4000.0, 2000.0),
    )
    assert verdict.answer == "linear 4.0 times as fast"
    assert verdict.tone == "good"
    assert spaces(verdict.text) == (
        "With 1,024 events kept in its state, a forecast after one more event takes "
        "linear 180 µs and softmax 720 µs (medians): linear is 4.0 times as fast. "
        "With a window of 1,024 events read anew, it takes linear 4.00 ms and softmax "
        "2.00 ms (medians): softmax is 2.0 times as fast."
    )


def test_a_slower_linear_forecaster_is_said_to_be_slower() -> None:
    verdict = latency_verdict(Timing(64, "linear", "softmax", 300.0, 200.0), None)
    assert verdict.answer == "softmax 1.5 times as fast"
    assert verdict.tone == "bad"


def test_nearly_equal_latencies_are_called_equal() -> None:
    verdict = latency_verdict(None, Timing(64, "linear", "softmax", 100.0, 104.0))
    assert verdict.answer == "About equal"


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
