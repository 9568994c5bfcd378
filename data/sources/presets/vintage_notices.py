"""What people should know about the vintages of a source; nothing is changed."""

from __future__ import annotations

from .vintages import VintageWalk

_SHOWN = 3


def vintage_notices(name: str, walk: VintageWalk) -> tuple[str, ...]:
    """Return how many values are older than the files, and how many are gone again.

    Parameters
    ----------
    name : str
        What messages call the source.
    walk : VintageWalk
    """
    num, total = walk.num_censored.total(), walk.num_events.total()
    censored = (
        f"{name}: {num:,} of {total:,} values stand in the first vintage of their series "
        f"({_shown(walk.first)}). The files begin there; most of these values were "
        "published earlier, and all count as known from that vintage on."
    )
    vanished = walk.num_vanished.total()
    if not vanished:
        return (censored,)
    counts = {
        series: f"{count:,}"
        for series, count in walk.num_vanished.most_common()
        if count
    }
    return (
        censored,
        f"{name}: values that a later vintage does not have any more: {vanished:,} "
        f"({_shown(counts)}). What was last known stays.",
    )


def ended_notices(name: str, walk: VintageWalk) -> tuple[str, ...]:
    """Return which series the last vintage has no more, where all should have all."""
    newest = max(walk.last.values())
    ended = {series: at for series, at in walk.last.items() if at < newest}
    if not ended:
        return ()
    return (
        f"{name}: {len(ended)} of {len(walk.last)} series are not in the last vintage "
        f"any more, {newest} (last in: {_shown(ended)}). What was last known stays.",
    )


def gap_notices(name: str, walk: VintageWalk) -> tuple[str, ...]:
    """Return how many months have no vintage between the first and the last one."""
    first, last = walk.known[0], walk.known[-1]
    num_months = _month_number(last) - _month_number(first) + 1
    absent = num_months - len(walk.known)
    if not absent:
        return ()
    return (
        f"{name}: {absent} of the {num_months} months from {first} to {last} have no "
        "vintage. What appeared in them counts as known only from the next vintage on, "
        "and revisions in between are not seen.",
    )


def _month_number(month: str) -> int:
    return 12 * int(month[:4]) + int(month[5:])


def _shown(texts: dict[str, str]) -> str:
    entries = [f"{name} {text}" for name, text in list(texts.items())[:_SHOWN]]
    more = len(texts) - _SHOWN
    return ", ".join(entries) + (f" and {more} more" if more > 0 else "")
