"""What is wrong with a configuration, in the words of the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

_LONGEST = 80
# What pydantic's kinds of error ask for, where its own words are not those of a file.
_WANTED = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "a mapping of keys and values",
    "float_parsing": "a number",
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "list_type": "a list",
    "mapping_type": "a mapping of keys and values",
    "model_attributes_type": "a mapping of keys and values",
    "model_type": "a mapping of keys and values",
    "path_type": "text",
    "string_type": "text (in quotes if it looks like something else)",
    "tuple_type": "a list",
}


def complaints(
    error: ValidationError, content: object, *, root: str = "experiment"
) -> list[str]:
    """Return a sentence for each wrong setting, which starts with its place.

    Parameters
    ----------
    error : ValidationError
    content : object
        What was validated: mappings and lists.
    root : str
        What the whole of it is called.
    """
    items = error.errors(include_url=False)
    wrong = [item["loc"] for item in items]
    return [
        f"{_place(item, content) or root} {_rule(item)}"
        for item in items
        # A list counts as short, too, where its items are refused.
        if not (item["type"] == "too_short" and _is_within(item["loc"], wrong))
    ]


def _is_within(path: tuple[int | str, ...], others: Sequence[tuple[Any, ...]]) -> bool:
    return any(o[: len(path)] == path and len(o) > len(path) for o in others)


def _place(item: Mapping[str, Any], content: object) -> str:
    """Return the path as it stands in the file: without the names of a union's kinds."""
    path: tuple[int | str, ...] = item["loc"]
    parts: list[str] = []
    for depth, part in enumerate(path):
        if not _is_kind(path[depth:], content, item):
            parts.append(str(part))
            content = _entry(content, part)
    return ".".join(parts)


def _is_kind(
    rest: tuple[int | str, ...], content: object, item: Mapping[str, Any]
) -> bool:
    """Whether a path goes on with the name of a kind of union, not with a key."""
    part, *below = rest
    is_missing = item["type"] == "missing"
    if not _holds(content, part):
        return not (is_missing and not below)
    if not below:
        return isinstance(content, dict) and item["input"] == content
    # A kind may be called like a key: `column`. A key would lead into its value.
    leads_on = isinstance(_entry(content, part), dict | list)
    return not leads_on and (_holds(content, below[0]) or is_missing)


def _holds(content: object, part: int | str) -> bool:
    if isinstance(content, list):
        return isinstance(part, int) and part < len(content)
    return isinstance(content, dict) and part in content


def _entry(content: object, part: int | str) -> object:
    if isinstance(content, dict | list) and _holds(content, part):
        return content[part]  # type: ignore[index]
    return None


def _rule(item: Mapping[str, Any]) -> str:
    context, given, kind = item.get("ctx", {}), item["input"], item["type"]
    got = "" if isinstance(given, dict) else f"; got {_shown(given)}"
    match kind:
        case "value_error":
            rule = str(context["error"]).strip()
        case "missing":
            rule = "must be given."
        case "literal_error":
            rule = f"must be one of {context['expected']}{got}."
        case "union_tag_invalid":
            kinds, given = context["expected_tags"], context["tag"]
            rule = f"must have as `kind` one of {kinds}; got {given!r}."
        case "union_tag_not_found":
            rule = "must have a `kind`."
        case "too_short" | "string_too_short":
            rule = f"must not be empty{got}."
        case _:
            wanted = _WANTED.get(kind, item["msg"].removeprefix("Input should be "))
            rule = f"must be {wanted}{got}."
    return rule


def _shown(given: object) -> str:
    text = repr(given)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."
