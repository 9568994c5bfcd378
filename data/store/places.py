"""From a path or a URI to the storage that it names."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs

from .local_storage import LocalStorage
from .object_storage import ObjectStorage
from .storage import Storage


def storage_at(place: str | Path) -> Storage:
    """Return the storage that a path or URI names; nothing is made yet.

    Parameters
    ----------
    place : str or Path
        A folder, or a URI that ``pyarrow.fs`` reads, such as
        ``s3://bucket/prefix?region=eu-central-1``, ``gs://bucket/prefix`` or
        ``abfs://container@account/prefix``.

    Raises
    ------
    ValueError
        If the URI names neither local disk nor an object store, or holds a secret.
    """
    text = os.fspath(place)
    if "://" not in text:
        return LocalStorage(Path(text))
    parts = urlsplit(text)
    if parts.scheme == "file":
        return LocalStorage(Path(unquote(parts.path)))
    if parts.password is not None:
        raise ValueError(
            "a store's URI must not hold a secret, which reports and manifests would "
            f"repeat; got one for {parts.hostname}. Leave it to the environment, such "
            "as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        )
    shown = f"{parts.scheme}://{parts.netloc}{parts.path}"
    wanted = (
        "a store must be a folder or the URI of an object store "
        f"(s3://, gs://, abfs://); got {shown}"
    )
    try:
        filesystem, root = pa.fs.FileSystem.from_uri(text)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ValueError(f"{wanted}: {error}. Correct the URI.") from error
    if filesystem.type_name not in {"s3", "gcs", "abfs"}:
        raise ValueError(
            f"{wanted}, which is {filesystem.type_name}. Choose another place."
        )
    return ObjectStorage(filesystem, root.strip("/"), uri=shown)
