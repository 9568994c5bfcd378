from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from infoset.data.sources.presets.vintages import Vintage, VintageWalk

# Per vintage: whether it is complete, and of each series the value of each period (None:
# not there; 0 stands for a cell that is there and empty).
CELL = st.none() | st.integers(0, 3)
VINTAGE = st.tuples(
    st.booleans(),
    st.dictionaries(
        st.sampled_from("AB"), st.lists(CELL, min_size=4, max_size=4), min_size=1
    ),
)


def vintage(
    number: int, cells: dict[str, list[int | None]], *, is_complete: bool
) -> Vintage:
    table = np.array(
        [[np.nan if c is None else c or np.nan for c in row] for row in cells.values()]
    )
    listed = [any(row[day] is not None for row in cells.values()) for day in range(4)]
    return Vintage(
        file=f"f{number % 2}",
        date_column="DATE",
        known=f"2000-01-{number + 1:02d}",
        days=np.flatnonzero(listed),
        series=tuple(cells),
        values=table.T[listed].astype(np.float64).reshape(-1, len(cells)),
        rows=np.flatnonzero(listed) + 100 * number,
        is_complete=is_complete,
    )


@given(st.lists(VINTAGE, max_size=6))
def test_a_walk_keeps_what_a_reader_would_note(
    given_vintages: list[tuple[bool, dict[str, list[int | None]]]],
) -> None:
    walk = VintageWalk()
    value: dict[tuple[str, int], int] = {}
    there: set[tuple[str, int]] = set()
    noted: list[tuple[str, int, str, float, int]] = []
    num_vanished = 0
    for number, (is_complete, cells) in enumerate(given_vintages):
        one = vintage(number, cells, is_complete=is_complete)
        walk.add(one)
        listed = set(one.days.tolist())
        for series, column in cells.items():
            for day, cell in enumerate(column):
                key = (series, day)
                if cell:
                    if value.get(key) != cell:
                        noted.append((series, day, one.known, cell, day + 100 * number))
                    value[key] = cell
                    there.add(key)
                elif key in there and (is_complete or day in listed):
                    num_vanished += 1
                    there.discard(key)
    found = [
        (series, day.toordinal() - 719163, known, number, row)
        for _, table in walk.tables()
        for (day, series, known, number), row in zip(
            zip(*(column.to_pylist() for column in table.columns.columns), strict=True),
            table.rows.tolist(),
            strict=True,
        )
    ]
    assert sorted(found) == sorted(noted)
    assert walk.num_vanished.total() == num_vanished
    assert walk.num_events.total() == len(noted)
    first = {series: min(n[2] for n in noted if n[0] == series) for series, *_ in noted}
    assert walk.first == first
    censored = sum(known == first[series] for series, _, known, _, _ in noted)
    assert walk.num_censored.total() == censored
    joined = walk.tables(joined="all")
    assert sum(len(table) for _, table in joined) == len(noted)
    assert len(joined) == bool(noted)
