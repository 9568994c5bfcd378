"""Universe membership: half-open spells, known in time, and nobody forgotten."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infoset.data.membership import ALWAYS, OPEN, Spells, restrict
from infoset.data.universe import Universe

COLUMNS = {"entity": "ticker", "member_from": "in", "member_until": "out"}
HEADER = "ticker,in,out\n"
TWO = HEADER + "A,2024-01-02T00:00Z,2024-01-05T00:00Z\nB,2024-01-01T00:00Z,\n"


def universe(folder: Path, text: str, **settings: str) -> Universe:
    (folder / "members.csv").write_text(text)
    declared = Universe.model_validate(COLUMNS | {"path": "members.csv"} | settings)
    return declared.based_at(folder)


def points(*pairs: tuple[str, str]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "entity": [name for name, _ in pairs],
            "forecast_time": pd.to_datetime([time for _, time in pairs], utc=True),
        }
    )


def kept(frame: pd.DataFrame) -> list[tuple[str, str]]:
    times = frame["forecast_time"].dt.strftime("%Y-%m-%dT%H:%M")
    return list(zip(frame["entity"], times, strict=True))


# Half-open


def test_the_first_instant_belongs_to_a_spell_and_the_last_does_not(
    tmp_path: Path,
) -> None:
    spells = universe(tmp_path, TWO).spells(["A", "B"])
    asked = points(
        ("A", "2024-01-01T23:59"),
        ("A", "2024-01-02T00:00"),
        ("A", "2024-01-04T23:59"),
        ("A", "2024-01-05T00:00"),
        ("B", "2031-01-01T00:00"),
    )
    for boundary in ("inclusive", "strict"):
        answer = restrict(spells, asked, boundary=boundary)
        assert kept(answer.points) == [
            ("A", "2024-01-02T00:00"),
            ("A", "2024-01-04T23:59"),
            ("B", "2031-01-01T00:00"),
        ]
        assert (answer.num_outside, answer.num_unknown, answer.num_left) == (2, 0, 1)


def test_a_name_that_comes_back_is_a_member_twice(tmp_path: Path) -> None:
    text = TWO + "A,2024-01-08T00:00Z,9999-12-31\n"
    spells = universe(tmp_path, text).spells(["A", "B"])
    days = [f"2024-01-{day:02d}T12:00" for day in (4, 5, 7, 8)]
    answer = restrict(spells, points(*(("A", d) for d in days)), boundary="inclusive")
    assert kept(answer.points) == [("A", days[0]), ("A", days[3])]
    assert answer.num_left == 0


def test_touching_spells_leave_no_gap_and_do_not_overlap(tmp_path: Path) -> None:
    text = (
        HEADER
        + "A,2024-01-01T00:00Z,2024-01-02T00:00Z\nA,2024-01-02T00:00Z,2024-01-03T00:00Z\n"
    )
    spells = universe(tmp_path, text).spells(["A"])
    days = points(*(("A", f"2024-01-0{day}T00:00") for day in (1, 2, 3)))
    assert len(restrict(spells, days, boundary="strict").points) == 2


def test_a_date_is_its_midnight_in_the_declared_zone(tmp_path: Path) -> None:
    text = HEADER + "A,2024-07-01,2024-07-02\n"
    spells = universe(tmp_path, text, zone="America/New_York").spells(["A"])
    asked = points(("A", "2024-07-01T03:59"), ("A", "2024-07-01T04:00"))
    answer = restrict(spells, asked, boundary="inclusive")
    assert kept(answer.points) == [("A", "2024-07-01T04:00")]


@pytest.mark.parametrize("end", ["", "9999-12-31", "9999-12-31T00:00:00"])
def test_an_open_end_may_be_written_in_several_ways(tmp_path: Path, end: str) -> None:
    spells = universe(tmp_path, f"{HEADER}A,2024-01-01T00:00Z,{end}\n").spells(["A"])
    assert spells.end.tolist() == [OPEN]


def test_a_ticker_that_looks_missing_is_a_name(tmp_path: Path) -> None:
    text = (
        HEADER
        + "NA,2024-01-01T00:00Z,\nNULL,2024-01-01T00:00Z,\n007,2024-01-01T00:00Z,\n"
    )
    spells = universe(tmp_path, text).spells(["NA", "NULL", "007"])
    assert spells.entities == ("007", "NA", "NULL")


def test_parquet_dates_and_timestamps_read_as_the_same_text_does(
    tmp_path: Path,
) -> None:
    frame = pd.DataFrame(
        {
            "ticker": ["A", "B"],
            "in": pd.to_datetime(["2024-01-02", "2024-01-01"]).astype("datetime64[us]"),
            "out": pd.array(["2024-01-05", "9999-12-31"], dtype="datetime64[s]"),
        }
    )
    frame.to_parquet(tmp_path / "members.parquet")
    declared = universe(tmp_path, TWO, path="members.parquet", zone="UTC")
    plain = universe(tmp_path, TWO).spells(["A", "B"])
    found = declared.spells(["A", "B"])
    for name in ("entity", "start", "end", "known"):
        assert getattr(found, name).tolist() == getattr(plain, name).tolist()


# Known in time

ANNOUNCED = (
    "ticker,in,out,told\nA,2024-01-02T00:00Z,2024-01-09T00:00Z,2024-01-04T15:00Z\n"
)


@pytest.mark.parametrize(
    ("boundary", "time", "kept_points"),
    [
        ("inclusive", "2024-01-04T14:59", 1),
        ("inclusive", "2024-01-04T15:00", 2),
        ("strict", "2024-01-04T15:00", 1),
        ("strict", "2024-01-04T15:01", 2),
    ],
)
def test_a_member_is_not_forecast_before_anybody_knew(
    tmp_path: Path, boundary: str, time: str, kept_points: int
) -> None:
    spells = universe(tmp_path, ANNOUNCED, known_at="told").spells(["A"])
    asked = points(("A", time), ("A", "2024-01-08T00:00"), ("A", "2024-01-09T00:00"))
    answer = restrict(spells, asked, boundary=boundary)  # type: ignore[arg-type]
    expected = [("A", time), ("A", "2024-01-08T00:00")]
    assert kept(answer.points) == expected[-kept_points:]
    assert (answer.num_unknown, answer.num_outside) == (2 - kept_points, 1)


def test_what_is_assumed_about_knowing_is_said(tmp_path: Path) -> None:
    plain = universe(tmp_path, TWO).assumptions
    assert plain[0].startswith(
        "Membership is taken as known when it starts (column in)"
    )
    dated = universe(tmp_path, ANNOUNCED, known_at="told").assumptions
    assert "columns in and told" in dated[0]
    assert (
        plain[1]
        == dated[1]
        == ("Its end is taken as known when it comes (column out).")
    )


# The oracle


@st.composite
def memberships(draw: st.DrawFn) -> pd.DataFrame:
    """Draw spells of few names and instants, so that they touch and repeat."""
    rows = []
    for name in "ABC":
        ends = draw(st.lists(st.integers(0, 12), max_size=6, unique=True).map(sorted))
        for start, end in zip(ends[::2], ends[1::2], strict=False):
            known = draw(st.one_of(st.just(ALWAYS), st.integers(-2, 12)))
            is_open = end == ends[-1] and draw(st.booleans())
            rows.append((name, start, OPEN if is_open else end, known))
    return pd.DataFrame(rows, columns=["entity", "start", "end", "known"])


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    spells=memberships(),
    asked=st.lists(st.tuples(st.sampled_from("ABCD"), st.integers(-1, 14)), min_size=1),
    boundary=st.sampled_from(["inclusive", "strict"]),
)
def test_membership_equals_the_double_loop(
    spells: pd.DataFrame, asked: list[tuple[str, int]], boundary: str
) -> None:
    frame = pd.DataFrame(
        {
            "entity": [name for name, _ in asked],
            "forecast_time": pd.to_datetime([t for _, t in asked], unit="ns", utc=True),
        }
    )
    fast = Spells(
        spells["entity"].to_numpy(dtype=object),
        *(spells[n].to_numpy(np.int64) for n in ("start", "end", "known")),
    ).among(frame, boundary=boundary)  # type: ignore[arg-type]
    member, known = [], []
    for name, time in asked:
        mine = [
            told <= time if boundary == "inclusive" else told < time
            for owner, start, end, told in spells.itertuples(index=False)
            if owner == name and start <= time < end
        ]
        member.append(bool(mine))
        known.append(any(mine))
    assert fast[0].tolist() == member
    assert fast[1].tolist() == known


# Refusals


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            "A,2024-01-01T00:00Z,2024-03-01T00:00Z\nB,2024-01-01T00:00Z,\nA,2024-02-01T00:00Z,\n",
            "spells of one entity must not overlap; got two of 'A' in rows 0 and 2 of "
            "members.csv. Correct their ends, or join them.",
        ),
        (
            "A,2024-01-01T00:00Z,\nB,2024-01-02T00:00Z,2024-01-02T00:00Z\n",
            "out must be after in; got 2024-01-02 00:00:00+00:00 and 2024-01-02 "
            "00:00:00+00:00 in row 1 of members.csv. Correct or remove the row.",
        ),
        (
            "A,2024-01-01T00:00Z,\nX,2024-01-02T00:00Z,\n",
            "entity of a universe must have a target; got 'X' in row 1 of members.csv. "
            "Add it to `targets`, also if it left since: without those that left, a "
            "test is of the survivors.",
        ),
        (
            "A,2024-01-01T00:00Z,\n",
            "every entity with a target must be in the universe; got no row of 'B' in "
            "members.csv. Add the spells, or remove it from `targets`.",
        ),
        (
            "A,2024-01-01T00:00Z,\nB,2024-01-02 09:30,\n",
            "in must be timezone-aware; got '2024-01-02 09:30' in row 1 of members.csv. "
            "Declare `universe.zone`, or write an offset or Z.",
        ),
        (
            "A,2024-01-01T00:00Z,2024-06-01\nB,2024-01-02T00:00Z,\n",
            "out must be timezone-aware; got '2024-06-01' in row 0 of members.csv.",
        ),
        (
            "A,2024-01-01T00:00Z,\nB,,\n",
            "in must hold dates or times such as 2019-12-23 or 2019-12-23T09:30-05:00; "
            "got an empty cell in row 1 of members.csv. Correct the cell.",
        ),
        (
            "A,01/02/2024,\nB,2024-01-01T00:00Z,\n",
            "got '01/02/2024' in row 0 of members.csv. Correct the cell.",
        ),
        (
            "A,2024-02-30T00:00Z,\nB,2024-01-01T00:00Z,\n",
            "in must hold days of the calendar; got '2024-02-30T00:00Z' in row 0 of "
            "members.csv. Correct the cell.",
        ),
        (
            "A,2024-01-01T00:00Z,\n,2024-01-01T00:00Z,\n",
            "entity must be named; got an empty cell in row 1 of members.csv (column "
            "'ticker'). Fill it, or remove the row.",
        ),
        ("", "members.csv must hold a row; got a header only."),
    ],
)
def test_a_wrong_row_is_refused_by_name(
    tmp_path: Path, rows: str, message: str
) -> None:
    with pytest.raises(ValueError, match="must") as raised:
        universe(tmp_path, HEADER + rows).spells(["A", "B"])
    assert message in str(raised.value)


def test_an_hour_that_the_clocks_skipped_is_refused(tmp_path: Path) -> None:
    text = HEADER + "A,2024-03-10 02:30,\n"
    with pytest.raises(
        ValueError,
        match=r"in must name one instant in America/New_York; got 2024-03-10 02:30:00 "
        "in row 0 of members.csv",
    ):
        universe(tmp_path, text, zone="America/New_York").spells(["A"])


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        (
            {"member_from": "inn"},
            r"universe.member_from must be a column of members.csv \(ticker, in, out\); "
            r"got 'inn'. Did you mean 'in'\? Correct `member_from`.",
        ),
        ({"known_at": "told"}, "universe.known_at must be a column of members.csv"),
        ({"path": "gone.csv"}, "universe.path must be a readable file; got 'gone.csv'"),
    ],
)
def test_a_wrong_setting_is_refused(
    tmp_path: Path, settings_: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        universe(tmp_path, TWO, **settings_).spells(["A", "B"])


def test_a_file_that_is_no_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "members.parquet").write_text(TWO)
    declared = universe(tmp_path, TWO, path="members.parquet")
    with pytest.raises(
        ValueError, match=r"universe.path must be a CSV or Parquet table"
    ):
        declared.spells(["A", "B"])


def test_numbers_as_names_are_refused(tmp_path: Path) -> None:
    frame = pd.DataFrame({"ticker": [7], "in": ["2024-01-01T00:00Z"], "out": [""]})
    frame.to_parquet(tmp_path / "members.parquet")
    declared = universe(tmp_path, TWO, path="members.parquet")
    with pytest.raises(TypeError, match="entity must be text; got int64 in column 'ti"):
        declared.spells(["7"])


def test_a_universe_without_a_member_at_any_forecast_time_is_refused(
    tmp_path: Path,
) -> None:
    spells = universe(tmp_path, TWO).spells(["A", "B"])
    with pytest.raises(ValueError, match="universe must hold a member at a forecast t"):
        restrict(spells, points(("A", "2025-01-01T00:00")), boundary="inclusive")
