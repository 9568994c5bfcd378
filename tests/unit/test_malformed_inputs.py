"""Cells and settings that are wrong: refused in words, or read as documented here.

No value is ever changed without a word. What is accepted although it looks odd is
listed with the exact result.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from malformed import (
    HEAD,
    ROWS,
    TEN,
    TEXT,
    TWO,
    Accepted,
    Case,
    Refused,
    a,
    check_file,
    date,
    line,
    lines,
    not_numeric,
)

NEW_YORK = "America/New_York"

# Numbers


def not_held(cell: str) -> Refused:
    return Refused(
        f"values.v must fit a float64; got {cell!r} in row 0 of f.csv (column 'v'). "
        "Keep ids as text (`kind: text`); write a large quantity with an exponent."
    )


NO_NUMBERS = [
    *(
        "NaN",
        "NA",
        "N/A",
        "#N/A",
        "null",
        "None",
        "-",
        ".",
        "?",
        "   ",
        "inf",
        "-Infinity",
    ),
    *("0x10", "1_000", "5%", "$5", "(5)", "\u22125", "\uff11\uff12", "\u0663", "1.5 "),
    *(
        "1,5",
        "1 000",
        "1\u00a0000",
        "1'000",
        "1.2.3",
        "1d5",
        "TRUE",
        "--1",
        "\u00bd",
        "1e",
    ),
]
NOT_HELD = [
    *("1e400", "-1e309", "1e-400", "2e-324", "9007199254740993", "9007199254740993.0"),
    "123456789012345678901234567890",
]
EXACT: dict[str, float] = {
    "9007199254740992": 2.0**53,
    "9007199254740994": 2.0**53 + 2,
    "9007199254740993e0": 2.0**53,  # with an exponent: a quantity, not an id
    "5e-324": 5e-324,
    "0e-999": 0.0,
    "0.1000000000000000055511151231257827": 0.1,
    "1E+5": 1e5,
    "00012": 12.0,
}
NUMBERS: dict[str, Case] = {
    **{
        f"number {cell!r}": (line(f'"{cell}"'), {}, not_numeric(cell))
        for cell in NO_NUMBERS
    },
    **{f"number {cell!r}": (line(cell), {}, not_held(cell)) for cell in NOT_HELD},
    **{
        f"number {cell!r}": (line(cell), {}, a(number))
        for cell, number in EXACT.items()
    },
    "quoted empty number": (line('""'), {}, Accepted([], ((0, "v", "no value"),))),
    "points as thousands marks look like decimals": (line("12.000"), {}, a(12.0)),
    "declared thousands marks": (
        line('"1,234,567.5"'),
        {"format": {"thousands": ","}},
        a(1234567.5),
    ),
    "a decimal comma among thousands commas": (
        line('"1,234,56"'),
        {"format": {"thousands": ","}},
        not_numeric("1,234,56"),
    ),
    "mixed types": (
        f"{HEAD}A,{TEN},1\nB,{TEN},two\n",
        {},
        Refused("values.v must be numeric; got 'two' in row 1 of f.csv (column 'v')"),
    ),
}

# Clocks


def no_instant(cell: str) -> Refused:
    return Refused(
        "event_time must be an instant such as 2024-03-01T16:00:00Z; got "
        f"{cell!r} in row 0 of f.csv (column 't'). Declare `event_time.format`"
    )


def out_of_range(cell: str) -> Refused:
    return Refused(
        f"event_time must lie in the years 1678 to 2261; got {cell!r} in row 0 of f.csv "
        "(column 't'). Correct or remove the row."
    )


def pattern(text: str, **more: str) -> dict[str, Any]:
    stamp = {"column": "t", "stamp": "instant", "format": text, "zone": "UTC"}
    return {"event_time": stamp | more}


def no_match(cell: str, text: str) -> Refused:
    return Refused(
        f"event_time must match the format {text!r}; got {cell!r} in row 0 of f.csv "
        "(column 't'). Correct the row, or `event_time.format`."
    )


def counted(unit: str) -> dict[str, Any]:
    return {"event_time": {"column": "t", "stamp": "instant", "epoch": unit}}


def local(stamp: str, zone: str) -> Case:
    event_time = {"column": "t", "stamp": "instant", "zone": zone}
    remedy = "give UTC or an offset"
    kind = "exist" if "-03-" in stamp else "name one instant"
    message = f"event_time must {kind} in {zone}; got {stamp!r} in row 0 of f.csv"
    return line(t=stamp), {"event_time": event_time}, Refused(message, remedy)


NO_INSTANTS = [
    *("1704189600", "1704189600000", "1704189600.5", "45293.4166", "20240102T100000Z"),
    *(
        "2024-02-30T10:00:00Z",
        "2023-02-29T10:00:00Z",
        "2024-13-01T10:00:00Z",
        "NaT",
        "nan",
    ),
    *("2024-01-02T24:00:00Z", "2016-12-31T23:59:60Z", "2024-01-02T23:60:00Z", "10:00"),
    *("2024-01-02T10:00:00+25:00", "2024-01-02T10:00:00+05:75", "2024-01-02T10:00:00z"),
    *("2024-01-02T10:00:00.1234567891Z", "24-01-02T10:00:00Z", "2024-1-2T10:00:00Z"),
    *("03/04/2024 10:00", "2024-01-02 10:00 EST", " 2024-01-02T10:00:00Z", "   "),
    "\uff12024-01-02T10:00:00Z",
]
OUT_OF_RANGE = ["1677-12-31T00:00:00Z", "2262-01-01T00:00:00Z", "0001-01-01T00:00:00Z"]
INSTANTS: dict[str, str] = {
    "2024-01-02T10:00:00-00:00": TEN,
    "2024-01-02T10:00:00+0530": "2024-01-02T04:30:00Z",
    "2024-01-02T10:00:00+14:00": "2024-01-01T20:00:00Z",
    "2024-01-02T10:00:00+23:59": "2024-01-01T10:01:00Z",  # as written
    "1678-01-01T00:00:00Z": "1678-01-01T00:00:00Z",
    "2261-12-31T23:59:59Z": "2261-12-31T23:59:59Z",
}
CLOCKS: dict[str, Case] = {
    **{
        f"instant {cell!r}": (line(t=cell), {}, no_instant(cell))
        for cell in NO_INSTANTS
    },
    **{
        f"instant {cell!r}": (line(t=cell), {}, out_of_range(cell))
        for cell in OUT_OF_RANGE
    },
    **{
        f"instant {cell!r}": (line(t=cell), {}, a(1.5, at))
        for cell, at in INSTANTS.items()
    },
    "seconds and milliseconds in one column": (
        f"{HEAD}A,1704189600,1\nA,1704189600000,2\n",
        {},
        no_instant("1704189600"),
    ),
    "milliseconds among seconds": (
        f"{HEAD}A,1704189600,1\nA,1704189600000,2\n",
        counted("s"),
        Refused(
            "t must count s since 1970, from 1678 to 2261; got '1704189600000' in row 1 "
            "of f.csv (column 't'). It seems to count ms. Correct the unit, or the row."
        ),
    ),
    "seconds among milliseconds": (
        f"{HEAD}A,1704189600000,1\nA,1704189600,2\n",
        counted("ms"),
        Refused(
            "t must count ms since 1970, but some lie before 20 February 1970, and none "
            "until 1980; got '1704189600' in row 1 of f.csv (column 't'). It seems to "
            "count s. Correct the unit, or the row."
        ),
    ),
    "a history from 1970 on": (
        f"{HEAD}A,1036800000,1\nA,31536000000,2\nA,1704189600000,3\n",
        counted("ms"),
        Accepted(
            [
                ("A", "1970-01-13T00:00:00Z", 1.0),
                ("A", "1971-01-01T00:00:00Z", 2.0),
                ("A", TEN, 3.0),
            ]
        ),
    ),
    "a fraction of a counted second": (
        line(t="1704189600.5"),
        counted("s"),
        Refused("t must be a whole number; got '1704189600.5' in row 0 of f.csv"),
    ),
    "a date where seconds are counted": (
        line(),
        counted("s"),
        Refused(
            f"t must be a whole number; got {TEN!r} in row 0 of f.csv (column 't')"
        ),
    ),
    "fractions of any length are exact": (
        f"{HEAD}A,{TEN},1\nA,2024-01-02T10:00:00.1Z,2\nA,1700-01-02T10:00:00Z,3\n",
        {},
        Accepted(
            [("A", "1700-01-02T10:00:00Z", 3.0), ("A", TEN, 1.0), ("A", TEN, 2.0)]
        ),
    ),
    "an offset in the second row only": (
        f"{HEAD}A,2024-01-02T10:00:00,1\nA,{TEN},2\n",
        {},
        Refused(
            "event_time must have an offset in all rows or in none; got "
            "'2024-01-02T10:00:00' in row 0 of f.csv (column 't'). Give UTC or an offset"
        ),
    ),
    "different offsets": (
        f"{HEAD}A,2024-01-02T10:00:00+05:00,1\nA,2024-01-02T10:00:00-05:00,2\n",
        {},
        Accepted(
            [("A", "2024-01-02T05:00:00Z", 1.0), ("A", "2024-01-02T15:00:00Z", 2.0)]
        ),
    ),
    "an offset beside a declared zone": (
        line(t="2024-01-02T10:00:00+01:00"),
        {"event_time": {"column": "t", "stamp": "instant", "zone": NEW_YORK}},
        a(1.5, "2024-01-02T09:00:00Z"),
    ),
    "a skipped hour": local("2024-03-31 02:30:00", "Europe/Berlin"),
    "a repeated hour": local("2024-10-27 02:30:00", "Europe/Berlin"),
    "a repeated half hour": local("2024-04-07 01:45:00", "Australia/Lord_Howe"),
    "a date at a repeated hour": (
        line(t="2024-11-03"),
        date(at="01:30", zone=NEW_YORK),
        Refused("event_time must be one instant at 01:30 in America/New_York; got "),
    ),
    "a missing stamp": (line(t=""), {}, Accepted([], ((0, "event_time", "missing"),))),
    "a zone with a blank": (
        line(),
        date(zone="New York"),
        Refused("must be an IANA zone such as America/New_York; got 'New York'."),
    ),
    "a zone with a typing error": (
        line(),
        date(zone="EST5EDST"),
        Refused(
            "must be an IANA zone such as America/New_York; got 'EST5EDST'", "EST5EDT"
        ),
    ),
    "a date before 1678": (line(t="1600-01-01"), date(), out_of_range("1600-01-01")),
    "a date after 2261": (line(t="9999-12-31"), date(), out_of_range("9999-12-31")),
    "an impossible date": (
        line(t="2024-02-30"),
        date(),
        no_match("2024-02-30", "%Y-%m-%d"),
    ),
}
PATTERNS: dict[str, Case] = {
    "a month where days are declared": (
        line(t="202412"),  # strptime reads 2 January
        date(format="%Y%m%d"),
        no_match("202412", "%Y%m%d"),
    ),
    "a digit short": (
        line(t="2024111"),
        date(format="%Y%m%d"),
        no_match("2024111", "%Y%m%d"),
    ),
    "days first where months are": (
        line(t="13/04/2024"),
        date(format="%m/%d/%Y"),
        no_match("13/04/2024", "%m/%d/%Y"),
    ),
    "days and months as declared": (
        line(t="03/04/2024"),
        date(format="%d/%m/%Y"),
        a(1.5, "2024-04-03T16:00:00Z"),
    ),
    "months before days as declared": (
        line(t="03/04/2024"),
        date(format="%m/%d/%Y"),
        a(1.5, "2024-03-04T16:00:00Z"),
    ),
    "two digits of a year": (
        f"{HEAD}A,02.01.68,1\nA,02.01.69,2\n",  # POSIX: 69 to 99 are of the 1900s
        date(format="%d.%m.%y"),
        Accepted(
            [("A", "1969-01-02T16:00:00Z", 2.0), ("A", "2068-01-02T16:00:00Z", 1.0)]
        ),
    ),
    "digits of another script": (
        line(t="\uff12\uff10\uff12\uff14-01-02"),
        date(format="%Y-%m-%d"),
        no_match("\uff12\uff10\uff12\uff14-01-02", "%Y-%m-%d"),
    ),
    "a leap second": (
        line(t="2016-12-31 23:59:60"),  # strptime reads the next minute
        pattern("%Y-%m-%d %H:%M:%S"),
        no_match("2016-12-31 23:59:60", "%Y-%m-%d %H:%M:%S"),
    ),
    "ten digits of a second": (
        line(t="2024-01-02 10:00:00.1234567891"),
        pattern("%Y-%m-%d %H:%M:%S.%f"),
        no_match("2024-01-02 10:00:00.1234567891", "%Y-%m-%d %H:%M:%S.%f"),
    ),
    "seconds of an offset": (
        line(t="2024-01-02 10:00 +05:00:30"),
        pattern("%Y-%m-%d %H:%M %z"),
        no_match("2024-01-02 10:00 +05:00:30", "%Y-%m-%d %H:%M %z"),
    ),
    "an afternoon hour after 12": (
        line(t="2024-01-02 16:30 PM"),
        pattern("%Y-%m-%d %I:%M %p"),
        no_match("2024-01-02 16:30 PM", "%Y-%m-%d %I:%M %p"),
    ),
    "a percent sign is no offset": (
        line(t="2024-01-02 10:00%z"),
        pattern("%Y-%m-%d %H:%M%%z"),
        a(1.5),
    ),
    "hours of 12 without their half": (
        line(),
        pattern("%Y-%m-%d %I:%M"),
        Refused("must hold %I and %p together", "got '%Y-%m-%d %I:%M'"),
    ),
    "halves of the day for hours of 24": (
        line(),  # strptime ignores the half
        pattern("%Y-%m-%d %H:%M %p"),
        Refused("must hold %I and %p together", "got '%Y-%m-%d %H:%M %p'"),
    ),
    "a pattern without a day": (
        line(),
        date(format="%Y-%m"),
        Refused("must hold a month and a day", "none is made up; got '%Y-%m'"),
    ),
    "a pattern without a year": (
        line(),
        pattern("%d.%m. %H:%M"),
        Refused("must hold a year (%Y): none is made up; got '%d.%m. %H:%M'"),
    ),
    "a pattern of an instant without a time of day": (
        line(),
        pattern("%Y-%m-%d"),
        Refused("must hold a time of day", "none is made up; got '%Y-%m-%d'"),
    ),
    "an availability without a time of day": (
        line(),
        {"available_at": {"column": "t", "format": "%Y-%m-%d"}},
        Refused("must hold a time of day", "none is made up; got '%Y-%m-%d'"),
    ),
    "days of a year": (
        line(),  # strptime reads day 366 of 2023 as 1 January
        date(format="%Y-%j"),
        Refused("must name the day by %d and %m", "got '%Y-%j'"),
    ),
}

# Ids, keys and settings

IDS: dict[str, Case] = {
    "ids that look like numbers": (
        lines(f"007,{TEN},1", f"7.0,{TEN},2", f"1e5,{TEN},3"),
        {},
        Accepted([("007", TEN, 1.0), ("1e5", TEN, 3.0), ("7.0", TEN, 2.0)]),
    ),
    "ids that look missing": (
        lines(f"NA,{TEN},1", f"null,{TEN},2"),
        {},
        Accepted([("NA", TEN, 1.0), ("null", TEN, 2.0)]),
    ),
    "ids that differ in what nobody sees": (
        lines(f"A,{TEN},1", f"A\u200b,{TEN},2", f"A ,{TEN},3", f"\u00a0A,{TEN},4"),
        {},
        Accepted(
            [
                ("A", TEN, 1.0),
                ("A ", TEN, 3.0),
                ("A\u200b", TEN, 2.0),
                ("\u00a0A", TEN, 4.0),
            ]
        ),
    ),
    "ids that differ in how an accent is written": (
        lines(f"\u00c9,{TEN},1", f"E\u0301,{TEN},2"),
        {},
        Accepted([("E\u0301", TEN, 2.0), ("\u00c9", TEN, 1.0)]),
    ),
    "a picture as an id": (line(id="\U0001f4c8"), {}, a(1.5, entity="\U0001f4c8")),
    "blanks as an id": (line(id="  "), {}, a(1.5, entity="  ")),
    "a missing id": (line(id=""), {}, Accepted([], ((0, "entity", "missing"),))),
    "the market's name as an id": (line(id="*"), {}, a(1.5, entity="*")),
    "texts that look missing": (line("NA"), TEXT, a("NA")),
    "a text of blanks": (line("  "), TEXT, a("  ")),
    "an empty text": (line(""), TEXT, Accepted([], ((0, "v", "no value"),))),
}
SEQUENCE = {"sequence": "n", "path": "f.csv"}


def numbered(cell: str) -> str:
    return f"id,t,v,n\nA,{TEN},1.5,{cell}\n"


def no_sequence(cell: str, rule: str = "be a whole number") -> Case:
    message = (
        f"sequence must {rule}; got {cell!r} in row 0 of f.csv (column 'n'). Name a"
    )
    return numbered(cell), SEQUENCE, Refused(message)


KEYS: dict[str, Case] = {
    "a sequence with a point": no_sequence("5.0"),
    "a sequence with an exponent": no_sequence("5e3"),
    "a sequence of a word": no_sequence("first"),
    "a sequence above 64 bits": no_sequence("9223372036854775808", "fit 64 bits"),
    "a sequence below 64 bits": no_sequence("-9223372036854775809", "fit 64 bits"),
    "the largest sequence": (numbered("+9223372036854775807"), SEQUENCE, a(1.5)),
    "zeros before a sequence": (numbered("00000000000000000000007"), SEQUENCE, a(1.5)),
    "a missing sequence": (numbered(""), SEQUENCE, a(1.5)),
    "a repeated row": (
        lines(*ROWS, *ROWS),
        {},
        Accepted(TWO, num_duplicates=2),
    ),
    "the two zeros": (
        lines(f"A,{TEN},0.0", f"A,{TEN},-0.0"),  # equal as numbers: one is a duplicate
        {},
        Accepted([("A", TEN, 0.0)], num_duplicates=1),
    ),
    "one key with a value and without": (
        lines(f"A,{TEN},1", f"A,{TEN},"),
        {},
        Accepted([("A", TEN, 1.0)], ((1, "v", "no value"),)),
    ),
    "one key with two values in other rows": (
        lines(*ROWS, f"A,{TEN},3"),
        {},
        Refused("f.csv: one event must have one set of values", "The rows are 0, 2."),
    ),
    "six events after their availability": (
        "id,t,k,v\n"
        + "".join(f"A,2024-01-0{n}T10:00Z,2024-01-01T09:00Z,1\n" for n in range(1, 7)),
        {"available_at": {"column": "k"}},
        Refused(
            "event_time must not be after available_at; got 2024-01-01 10:00:00+00:00 > ",
            "in rows 0, 1, 2, 3, 4 and 1 more of f.csv (column 't'). Correct the clock",
        ),
    ),
}
SETTINGS: dict[str, Case] = {
    "a setting with a typing error": (
        line(),
        {"avalable_at": {"lag": "0s"}},
        Refused("has no key 'avalable_at'. Did you mean 'available_at'?"),
    ),
    "a setting of another format": (
        line(),
        {"format": {"seperator": ";"}},
        Refused("has no key 'seperator'"),
    ),
    "a stamp of no kind": (
        line(),
        {"event_time": {"column": "t", "stamp": "epoch"}},
        Refused("a mapping whose `stamp` is instant, date, session_close"),
    ),
    "a delimiter of two letters": (
        line(),
        {"format": {"delimiter": ";;"}},
        Refused("delimiter"),
    ),
    "an ending in capitals": (
        line(),
        {"path": "F.CSV"},
        Refused("must name a file that ends in .csv,", "got 'F.CSV'"),
    ),
}
CASES = NUMBERS | CLOCKS | PATTERNS | IDS | KEYS | SETTINGS


@pytest.mark.parametrize("case", CASES)
def test_a_malformed_cell_is_refused_in_words_or_read_as_documented(
    tmp_path: Path, case: str
) -> None:
    check_file(tmp_path, CASES[case])
