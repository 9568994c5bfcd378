"""Who made a setting wrong: the file, or which `--set`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .config_text import override, plain


def refusal(
    content: dict[str, Any],
    overrides: Sequence[str],
    *,
    where: str,
    wrong_settings: Callable[[object], list[str]],
) -> str:
    """Return what is wrong, each sentence under where it comes from.

    A sentence that was not there before an override, and stayed, comes from it.

    Parameters
    ----------
    content : dict
        As the file has it, without the overrides.
    overrides : sequence of str
        In their order; each can be followed.
    where : str
        How the file is called.
    wrong_settings : callable
        Gives the sentences about a content.
    """
    content = plain(content)
    steps = [(where, wrong_settings(content))]
    for text in overrides:
        override(content, text)
        name = f"--set {text.partition('=')[0].strip()}"
        steps.append((name, wrong_settings(content)))
    listed: dict[str, list[str]] = {name: [] for name, _ in steps}
    for sentence in steps[-1][1]:
        place = len(steps) - 1
        while place and sentence in steps[place - 1][1]:
            place -= 1
        listed[steps[place][0]].append(sentence)
    return "\n".join(_block(name, wrong) for name, wrong in listed.items() if wrong)


def _block(name: str, wrong: Sequence[str]) -> str:
    if len(wrong) == 1:
        return f"{name}: {wrong[0]}"
    return f"{name}:\n  " + "\n  ".join(wrong)
