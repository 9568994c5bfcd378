"""Embeddings kept on disk: a text is encoded once, whatever asks for it again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from jaxtyping import Float64

from .text_encoders import TextEncoder, encoded

_BATCH = 1024
_ENCODER, _CONTENT = b"infoset.encoder_digest", b"infoset.content_sha256"


def embeddings(
    texts: Sequence[str], encoder: TextEncoder, *, folder: Path | None = None
) -> Float64[np.ndarray, "n d"]:
    """Return the encoder's numbers of each text; those in the folder are not made anew.

    Texts are encoded in batches, and each batch is kept as soon as it is done: a file
    ``<encoder>/<texts>.parquet``, named by the digests of both, with one row per text.
    A file that is damaged counts as absent.

    Parameters
    ----------
    texts : sequence of str
        In any order; equal texts are encoded once.
    encoder : TextEncoder
    folder : Path, optional
        Where embeddings are kept. Without it all are made anew.

    Raises
    ------
    ValueError, TypeError, LookAheadError
        See `text_encoders.encoded`; or if the folder holds numbers of this digest and
        another length.
    """
    digests = [_digest(text) for text in texts]
    place_of = {digest: place for place, digest in enumerate(digests)}
    wanted = sorted(place_of)
    row_of = {digest: row for row, digest in enumerate(wanted)}
    answer = np.full((len(wanted), encoder.num_features), np.nan)
    missing = set(wanted)
    for kept, numbers in _kept(encoder, folder):
        rows = [(row_of[d], at) for at, d in enumerate(kept) if d in missing]
        if rows:
            answer[[row for row, _ in rows]] = numbers[[at for _, at in rows]]
            missing.difference_update(kept)
    left = [digest for digest in wanted if digest in missing]
    for begin in range(0, len(left), _BATCH):
        batch = left[begin : begin + _BATCH]
        numbers = encoded(encoder, [texts[place_of[digest]] for digest in batch])
        answer[[row_of[digest] for digest in batch]] = numbers
        if folder is not None:
            _keep(batch, numbers, encoder, folder)
    return answer[[row_of[digest] for digest in digests]]


def _kept(
    encoder: TextEncoder, folder: Path | None
) -> Iterator[tuple[list[str], np.ndarray]]:
    """Yield the digests and numbers of every whole file of an encoder."""
    if folder is None:
        return
    for path in sorted(_home(encoder, folder).glob("*.parquet")):
        try:
            table = pa.parquet.read_table(path)
        except (OSError, pa.ArrowException):
            continue
        found = _content(table, encoder)
        if found is None:
            continue
        if found[1].shape[1] != encoder.num_features:
            raise ValueError(
                f"an encoder's digest must change with its numbers; got "
                f"{found[1].shape[1]} of them in {path} and {encoder.num_features} from "
                f"{encoder.name!r} now. Give it another digest."
            )
        yield found


def _content(
    table: pa.Table, encoder: TextEncoder
) -> tuple[list[str], np.ndarray] | None:
    """Return what a file holds if it is of this encoder and unchanged."""
    about = table.schema.metadata or {}
    named = table.column_names == ["text_digest", "embedding"]
    if not named or about.get(_ENCODER) != encoder.digest.encode():
        return None
    column = table["embedding"].combine_chunks()
    if not pa.types.is_fixed_size_list(column.type) or column.null_count:
        return None
    numbers = column.flatten().to_numpy().reshape(-1, column.type.list_size)
    digests = table["text_digest"].to_pylist()
    whole = about.get(_CONTENT) == _content_digest(digests, numbers)
    return (digests, numbers) if whole else None


def _keep(
    digests: list[str], numbers: np.ndarray, encoder: TextEncoder, folder: Path
) -> None:
    home = _home(encoder, folder)
    home.mkdir(parents=True, exist_ok=True)
    vectors = pa.FixedSizeListArray.from_arrays(
        pa.array(numbers.ravel()), encoder.num_features
    )
    cutoff = encoder.training_cutoff
    table = pa.table({"text_digest": digests, "embedding": vectors})
    table = table.replace_schema_metadata(
        {
            _ENCODER: encoder.digest,
            _CONTENT: _content_digest(digests, numbers),
            b"infoset.encoder": encoder.name,
            b"infoset.training_cutoff": "" if cutoff is None else cutoff.isoformat(),
        }
    )
    path = home / f"{_short(''.join(digests))}.parquet"
    partial = path.with_name(f"{path.name}.partial-{os.getpid()}")
    try:
        pa.parquet.write_table(table, partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _home(encoder: TextEncoder, folder: Path) -> Path:
    # A digest is the encoder's own text and may hold anything; a file name may not.
    return folder / _short(encoder.digest)


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _short(text: str) -> str:
    return _digest(text)[:32]


def _content_digest(digests: list[str], numbers: np.ndarray) -> bytes:
    content = sha256("".join(digests).encode())
    content.update(str((numbers.dtype, numbers.shape)).encode())
    content.update(numbers.tobytes())
    return content.hexdigest().encode()
