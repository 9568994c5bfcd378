"""Lists of filings as EDGAR serves them, for tests.

The filings of Apple Inc. are EDGAR's (public domain), as recorded by
dgunning/edgartools; their stamps are New York time.
"""

from __future__ import annotations

from typing import Any

APPLE = "0000320193"
NEXT_OPEN = {"sessions": 1, "calendar": "XNYS", "at": "session_open"}
Row = tuple[str, str, str, str]
# accession, form, filing date, stamp
ANNUAL = [
    ("0000320193-19-000119", "10-K", "2019-10-31", "2019-10-30T18:12:36.000Z"),
    ("0000320193-20-000096", "10-K", "2020-10-30", "2020-10-29T18:06:25.000Z"),
]
QUARTER = ("0000320193-19-000076", "10-Q", "2019-07-31", "2019-07-31T16:31:53.000Z")


def submissions(rows: list[Row], cik: str = APPLE, **more: Any) -> dict[str, Any]:
    """Return the JSON of a filer, in which 8-Ks have the items of results."""
    columns = list(zip(*rows, strict=True))
    recent = {
        "accessionNumber": columns[0],
        "filingDate": columns[2],
        "reportDate": ["2019-09-28"] * len(rows),
        "acceptanceDateTime": columns[3],
        "form": columns[1],
        "items": ["2.02,9.01" if form == "8-K" else "" for form in columns[1]],
        "size": [1000] * len(rows),
        "isXBRL": [0] * len(rows),
    }
    filings = {"recent": recent, "files": []}
    return {"cik": cik, "tickers": ["AAPL"], "filings": filings} | more
