"""The account of an ingest for the terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table

from .ingest import QUARANTINED, Ingested

_SHOWN = 10


def ingest_table(done: Ingested) -> RenderableType:
    """Return the account by stream, then what was noticed and what is never used."""
    parts: list[RenderableType] = [_accounts(done)]
    parts += [f"Notice: {notice}" for notice in done.notices]
    if len(done.quarantine):
        parts.append(_quarantine(done))
    return Group(*parts)


def _accounts(done: Ingested) -> Table:
    stored = "usable" if done.receipt is None else "stored"
    table = Table("stream", title="Rows")
    for name in ("read", stored, "already stored", "duplicates", "quarantined"):
        table.add_column(name, justify="right")
    rows = [
        (a.read, a.stored, a.already_stored, a.duplicates, a.quarantined)
        for a in done.accounts
    ]
    for account, row in zip(done.accounts, rows, strict=True):
        table.add_row(account.stream, *(f"{count:,}" for count in row))
    if len(rows) > 1:
        table.add_section()
        totals = (sum(column) for column in zip(*rows, strict=True))
        table.add_row("all", *(f"{total:,}" for total in totals))
    return table


def _quarantine(done: Ingested) -> Table:
    more = len(done.quarantine) - _SHOWN
    table = Table(
        *QUARANTINED,
        title="Quarantined: never used",
        caption=f"and {more:,} more" if more > 0 else None,
    )
    for row in done.quarantine.head(_SHOWN).itertuples(index=False):
        table.add_row(*(str(cell) for cell in row))
    return table
