"""Snapshots of streams: all that one remembers, in one file that can be trusted.

The file is safetensors: the tensors by name, and in its metadata one JSON header, which
holds a digest of everything. Nothing is unpickled.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from infoset.data.durable import sync
from infoset.data.timeline import History

FORMAT = 1
_HEADER, _DIGEST = "infoset", "sha256"
_PREFIX_BYTES = 8  # safetensors: the length of its own header comes first


@dataclass(frozen=True)
class StreamOrigin:
    """Where a stream comes from, which decides where its snapshot may go.

    Attributes
    ----------
    model : str
        `AttentionForecaster.model_digest`.
    entity : str
    history : History
    """

    model: str
    entity: str
    history: History


@dataclass(frozen=True, eq=False)
class StreamSnapshot:
    """All that a stream remembers.

    Attributes
    ----------
    header : Mapping[str, Any]
        JSON values: `format`, `model`, `kind` (``state`` or ``window``), `entity`,
        `history`, and the numbers beside the tensors.
    tensors : Mapping[str, Tensor]
    """

    header: Mapping[str, Any]
    tensors: Mapping[str, Tensor]

    @classmethod
    def of(
        cls,
        origin: StreamOrigin,
        kind: str,
        tensors: Mapping[str, Tensor],
        **numbers: str | int | float | list[str],
    ) -> StreamSnapshot:
        """Describe a stream's tensors and the numbers beside them."""
        header = {
            "format": FORMAT,
            "model": origin.model,
            "kind": kind,
            "entity": origin.entity,
            "history": origin.history.model_dump(mode="json"),
            **numbers,
        }
        return cls(header, tensors)

    @property
    def origin(self) -> StreamOrigin:
        """Where the stream came from."""
        header = self.header
        history = History.model_validate(header["history"])
        return StreamOrigin(header["model"], header["entity"], history)

    def save(self, path: Path) -> None:
        """Write the file: the old one or the whole new one, also after a power cut."""
        write_snapshot(path, self.header, self.tensors)

    @classmethod
    def load(cls, path: Path) -> StreamSnapshot:
        """Read a file that `save` wrote; see `read_snapshot` for what is refused."""
        header, tensors = read_snapshot(path)
        if header["kind"] not in {"state", "window"}:
            raise ValueError(
                f"a snapshot must be that of one stream; got kind {header['kind']!r} in "
                f"{path}. Read the file with the command that wrote it."
            )
        return cls(header, tensors)

    def require_model(self, model: str) -> None:
        """Refuse a model that did not make the snapshot.

        Raises
        ------
        ValueError
        """
        made_by = self.header["model"]
        if made_by != model:
            raise ValueError(
                "a snapshot must be restored by the model that made it; got one of "
                f"model {made_by[:12]} (entity {self.header['entity']}) for model "
                f"{model[:12]}. Load that model, or feed the events to a new stream."
            )


def write_snapshot(
    path: Path, header: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> None:
    """Write a header and tensors so that the file is durable and never half there."""
    plain = {name: x.detach().contiguous() for name, x in tensors.items()}
    digest = _digest(header, *_parts(path, save(plain)))
    text = json.dumps({**header, _DIGEST: digest})
    partial = path.with_name(f"{path.name}.partial")
    with partial.open("wb") as file:
        file.write(save(plain, metadata={_HEADER: text}))
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    sync(path.parent)


def read_snapshot(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read what `write_snapshot` wrote.

    Raises
    ------
    ValueError
        If the file is no snapshot, is of an unknown format, or is damaged.
    OSError
        If it cannot be read.
    """
    content = path.read_bytes()
    about, numbers = _parts(path, content)
    header = _header(path, about)
    if header.get("format") != FORMAT:
        raise ValueError(
            f"a snapshot must be of format {FORMAT}; got {header.get('format')!r} in "
            f"{path}. Restore it with the version of infoset that wrote it."
        )
    if header.pop(_DIGEST, None) != _digest(header, about, numbers):
        raise _damaged(path)
    try:
        # Copies: what is read in place lies where the file put it, and rounding in
        # matrix products may depend on how a tensor is aligned.
        return header, {name: x.clone() for name, x in load(content).items()}
    except SafetensorError as error:
        raise _damaged(path) from error


def _parts(path: Path, content: bytes) -> tuple[dict[str, Any], memoryview]:
    """Return what safetensors says of the tensors, and their numbers, not copied."""
    length = int.from_bytes(content[:_PREFIX_BYTES], "little")
    try:
        about = json.loads(content[_PREFIX_BYTES : _PREFIX_BYTES + length])
    except ValueError as error:
        raise _no_snapshot(path) from error
    if not isinstance(about, dict):
        raise _no_snapshot(path)
    return about, memoryview(content)[_PREFIX_BYTES + length :]


def _header(path: Path, about: Mapping[str, Any]) -> dict[str, Any]:
    try:
        header = json.loads(about["__metadata__"][_HEADER])
    except (ValueError, KeyError, TypeError) as error:
        raise _no_snapshot(path) from error
    if not isinstance(header, dict):
        raise _no_snapshot(path)
    return header


def _no_snapshot(path: Path) -> ValueError:
    return ValueError(
        f"{path} must be a snapshot; got a file without a header that can be read. Name "
        "another file, or feed the events to a new stream."
    )


def _damaged(path: Path) -> ValueError:
    return ValueError(
        f"a snapshot must be as it was written; {path} was changed or cut off since. "
        "Restore an older one, or feed the events to a new stream."
    )


def _digest(
    header: Mapping[str, Any], about: Mapping[str, Any], numbers: memoryview
) -> str:
    tensors = {name: x for name, x in about.items() if name != "__metadata__"}
    text = json.dumps([header, tensors], sort_keys=True, allow_nan=False)
    digest = sha256(text.encode())
    digest.update(numbers)
    return digest.hexdigest()
