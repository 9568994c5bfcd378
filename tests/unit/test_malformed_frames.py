"""Frames that are wrong: refused in words, or read as documented here."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from malformed import TEN, Accepted, Refused, check

from infoset.data import EventLog

TIMES = pd.to_datetime(pd.Series([TEN, "2024-01-03T10:00:00Z"]))
BOTH = [("A", TEN, 1.0), ("A", "2024-01-03T10:00:00Z", 2.0)]
SECOND = [("A", "2024-01-03T10:00:00Z", 2.0)]
Frame = tuple[dict[str, Any], dict[str, Any], Refused | Accepted]


def kind(column: str, got: str) -> Refused:
    rules = {
        "entity": "entity must be text; got ",
        "event_time": "event_time must hold datetimes; got ",
        "sequence": "sequence must hold integers; got ",
        "value": "value must hold numbers or text; got ",
    }
    return Refused(rules[column] + got, error=TypeError)


def seconds(*stamps: str) -> pd.Series:
    return pd.Series(np.array(stamps, "datetime64[s]")).dt.tz_localize("UTC")


def texts(*values: str) -> Accepted:
    return Accepted([(e, t, v) for (e, t, _), v in zip(BOTH, values, strict=True)])


FRAMES: dict[str, Frame] = {
    "ids as integers": (
        {"entity": [7, 8]},
        {},
        kind("entity", "7 in row 0 of stream 's'"),
    ),
    "ids as floats": ({"entity": [7.0, 8.0]}, {}, kind("entity", "7.0 in row 0")),
    "ids of two kinds": (
        {"entity": pd.Series(["A", 7], dtype=object)},
        {},
        kind("entity", "7 in row 1 of stream 's'. Ids that look like numbers"),
    ),
    "ids as bytes": ({"entity": [b"A", b"A"]}, {}, kind("entity", "b'A' in row 0")),
    "a missing id": (
        {"entity": pd.Series([None, "A"], dtype=object)},
        {},
        Accepted(SECOND, ((0, "entity", "missing"),)),
    ),
    "ids in categories": (
        {"entity": pd.Series(["A", "A"]).astype("category")},
        {},
        Accepted(BOTH),
    ),
    "ids that look missing": (
        {"entity": ["nan", "NA"]},
        {},
        Accepted([("NA", "2024-01-03T10:00:00Z", 2.0), ("nan", TEN, 1.0)]),
    ),
    "half a surrogate pair": (
        {"entity": pd.Series(["A\ud800", "A"], dtype=object)},
        {},
        Refused("surrogates not allowed"),
    ),
    "stamps as text": (
        {"event_time": [TEN, TEN]},
        {},
        kind("event_time", "str of s. Parse"),
    ),
    "stamps as numbers": ({"event_time": [1, 2]}, {}, kind("event_time", "int64 of s")),
    "stamps of two offsets": (
        {
            "event_time": pd.Series(
                [pd.Timestamp(TEN), pd.Timestamp("2024-01-03T10:00+02:00")],
                dtype=object,
            )
        },
        {},
        kind("event_time", "object of s. Parse the column before"),
    ),
    "periods": (
        {"event_time": pd.period_range("2023-01", periods=2, freq="M")},
        {},
        kind("event_time", "period[M] of s"),
    ),
    "a missing stamp": (
        {"event_time": [pd.NaT, TIMES[1]]},
        {},
        Accepted(SECOND, ((0, "event_time", "missing"),)),
    ),
    "a missing availability": (
        {"available_at": [pd.NaT, TIMES[1]]},
        {},
        Accepted(SECOND, ((0, "available_at", "missing"),)),
    ),
    "an instant before 1677": (
        {"event_time": seconds("1600-01-01", "2024-01-03")},
        {},
        Refused(
            "event_time must lie between 1677 and 2262;", "Correct or remove the row"
        ),
    ),
    "a zone with a typing error": (
        {"event_time": TIMES.dt.tz_localize(None)},
        {"zone": "America/NewYork"},
        Refused(
            "zone of event_time must be an IANA zone", "got 'America/NewYork' of s"
        ),
    ),
    "a naive availability": (
        {"available_at": TIMES.dt.tz_localize(None)},
        {},
        Refused(
            "available_at must be timezone-aware; got 2024-01-02 10:00:00 in row 0 of s"
        ),
    ),
    "a skipped hour": (
        {"event_time": pd.to_datetime(["2024-03-31 02:30", "2024-03-31 03:30"])},
        {"zone": "Europe/Berlin"},
        Refused(
            "event_time must name one instant in Europe/Berlin; got 2024-03-31 02:30:00"
        ),
    ),
    "an event after its availability": (
        {"available_at": TIMES - pd.Timedelta("1s")},
        {},
        Refused(
            "event_time must not be after available_at;", "in rows 0, 1 of stream 's'"
        ),
    ),
    "a sequence of floats": (
        {"sequence": [1.0, np.nan]},
        {},
        kind("sequence", "float64"),
    ),
    "a sequence of texts": ({"sequence": ["1", "2"]}, {}, kind("sequence", "str")),
    "a sequence of flags": ({"sequence": [True, False]}, {}, kind("sequence", "bool")),
    "a sequence above 64 bits": (
        {"sequence": pd.array([1, 2**63], dtype="UInt64")},  # would wrap around
        {},
        Refused(
            "sequence must fit int64; got 9223372036854775808 in row 1 of stream 's'"
        ),
    ),
    "an integer that a float cannot hold": (
        {"value": pd.array([1, 2**53 + 1], dtype="Int64")},
        {},
        Refused(
            "value must fit a float64; got 9007199254740993 in row 1 of stream 's'"
        ),
    ),
    "more precision than a float has": (
        {
            "value": np.array([1, 1], np.longdouble)
            + np.array([0, 1e-19], np.longdouble)
        },
        {},
        Refused("value must fit a float64; got ", "in row 1 of stream 's'"),
    ),
    "complex numbers": ({"value": [1 + 2j, 2]}, {}, kind("value", "complex128")),
    "flags": (
        {"value": pd.array([True, None], "boolean")},
        {},
        kind("value", "boolean"),
    ),
    "decimals": ({"value": [Decimal("0.1")] * 2}, {}, kind("value", "object")),
    "numbers and texts": (
        {"value": pd.Series([1.5, "x"], dtype=object)},
        {},
        kind("value", "object"),
    ),
    "durations": ({"value": TIMES - TIMES[0]}, {}, kind("value", "timedelta64")),
    "datetimes": ({"value": TIMES}, {}, kind("value", "datetime64")),
    "numbers in categories": (
        {"value": pd.Series([1.0, 2.0]).astype("category")},
        {},
        kind("value", "category"),
    ),
    "numbers as texts are texts": ({"value": ["1.5", "NA"]}, {}, texts("1.5", "NA")),
    "single precision is widened exactly": (
        {"value": np.array([0.1, 2], np.float32)},
        {},
        Accepted([("A", TEN, 0.10000000149011612), *SECOND]),
    ),
    "a negative infinity": (
        {"value": [-np.inf, 2]},
        {},
        Accepted(SECOND, ((0, "value", "infinite"),)),
    ),
    "no number": (
        {"value": [np.nan, 2]},
        {},
        Accepted(SECOND, ((0, "value", "no value"),)),
    ),
    "a column twice": (
        {},
        {"values": ["value", "value"]},
        Refused("column 'value' of stream 's' must be there once; got it more often"),
    ),
    "a column of another case": (
        {},
        {"values": ["Value"]},
        Refused(
            "column 'Value' must be in the frame of stream 's'; got entity, event_time"
        ),
    ),
}


@pytest.mark.parametrize("case", FRAMES)
def test_a_malformed_frame_is_refused_in_words_or_read_as_documented(case: str) -> None:
    columns, options, outcome = FRAMES[case]
    plain = {"entity": ["A", "A"], "event_time": TIMES, "available_at": TIMES}
    frame = pd.DataFrame(plain | {"value": [1.0, 2.0]} | columns)
    settings: dict[str, Any] = {"stream": "s", "values": ["value"]} | options
    check(lambda: EventLog.from_pandas(frame, **settings), outcome, "value")


@pytest.mark.parametrize("column", ["entity", "event_time", "available_at", "value"])
def test_a_frame_with_a_column_twice_is_refused(column: str) -> None:
    plain = {"entity": ["A", "A"], "event_time": TIMES, "available_at": TIMES}
    frame = pd.DataFrame(plain | {"value": [1.0, 2.0]})
    twice = pd.concat([frame, frame[[column]]], axis=1)
    with pytest.raises(
        ValueError, match=f"column '{column}' of stream 's' must be there"
    ):
        EventLog.from_pandas(twice, stream="s", values=["value"])
