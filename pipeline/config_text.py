"""The text of a configuration as plain mappings, lists and values; overrides in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml


def read_mapping(path: Path) -> dict[str, Any]:
    """Read a YAML file of keys and values.

    Raises
    ------
    ValueError
        If the file cannot be read, is not YAML, names a key twice, or holds something
        else than keys and values.
    """
    try:
        content = _loaded(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(
            f"config must be a readable file; got {path} ({error.strerror})."
        ) from error
    except UnicodeDecodeError as error:
        raise ValueError(
            f"config must be UTF-8 text; got byte 0x{error.object[error.start]:02x} "
            f"at position {error.start} of {path}. Save the file as UTF-8."
        ) from error
    except yaml.YAMLError as error:
        raise ValueError(
            f"config must be valid YAML; got {path}: {_problem(error)}."
        ) from error
    if not isinstance(content, dict):
        raise ValueError(  # noqa: TRY004 (a file's content, not an argument)
            f"config must hold keys and values; got {type(content).__name__} in "
            f"{path}. Write `name: ...` and so on."
        )
    return content


def plain(content: object) -> Any:  # noqa: ANN401 (any value)
    """Return a copy whose mappings are dicts and whose sequences are lists."""
    if isinstance(content, Mapping):
        return {key: plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [plain(value) for value in content]
    return content


def override(content: dict[str, Any], text: str) -> None:
    """Change one setting in place: ``path.to.key=value``, the value in YAML.

    A number in the path is a place in a list, from 0. Mappings on the way that are
    not there are made.

    Raises
    ------
    ValueError
        If the text reads otherwise, or the path leads through a value.
    """
    path, equals, value = text.partition("=")
    *parents, last = path.strip().split(".")
    if not equals or not all([*parents, last]):
        raise ValueError(
            f"--set must read path.to.key=value; got {text!r}. "
            "Write for example folds.test_size=1Y."
        )
    place: Any = content
    for key in parents:
        if isinstance(place, dict):
            place.setdefault(key, {})
        place = place[_key(place, key, text)]
    try:
        place[_key(place, last, text)] = _loaded(value)
    except yaml.YAMLError as error:
        raise ValueError(
            f"--set must hold a YAML value; got {text!r}: {_problem(error)}."
        ) from error


def _key(place: object, key: str, text: str) -> str | int:
    if isinstance(place, dict):
        return key
    if not isinstance(place, list):
        raise ValueError(  # noqa: TRY004 (a file's content, not an argument)
            f"--set must name a key of a mapping or a place in a list; got {text!r}, "
            f"but {key!r} is looked for in {place!r}."
        )
    if not key.isdecimal() or int(key) >= len(place):
        raise ValueError(
            f"--set must name a place in a list of {len(place)}, from 0; got {key!r} "
            f"in {text!r}."
        )
    return int(key)


class _OneEach(yaml.SafeLoader):
    """Refuses a key that stands twice in a mapping, where YAML would take the last."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:  # noqa: ANN401
        node = super().compose_mapping_node(anchor)
        found: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in found:
                raise yaml.composer.ComposerError(
                    problem=f"the key {key.value!r} stands twice",
                    problem_mark=key.start_mark,
                )
            if isinstance(key, yaml.ScalarNode):
                found.add(key.value)
        return node


def _loaded(text: str) -> Any:  # noqa: ANN401 (any YAML value)
    return yaml.load(text, Loader=_OneEach)  # noqa: S506 (it is a SafeLoader)


def _problem(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or " ".join(str(error).split())
    return problem if mark is None else f"{problem} in line {mark.line + 1}"
