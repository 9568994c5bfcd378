"""Events on disk, append-only, readable as they stood at any earlier ingest.

A store is a folder (or a prefix of an object store) with

- ``events/stream=S/month=2024-03/00000007-....parquet``: the rows of stream S that
  became available in March 2024 and that ingest 7 brought. Readable by any tool;
- ``quarantine/00000007-....parquet``: the rows of ingest 7 that are never used;
- ``manifests/00000007.json``: what ingest 7 consists of, with a digest of each file, of
  itself and of the manifest before. Written last: an ingest is there when it is.
"""

from .errors import StoreBusyError, StoreDamagedError, StoreUnwritableError
from .receipts import Origin, OriginFile, Receipt
from .store import Store

__all__ = [
    "Origin",
    "OriginFile",
    "Receipt",
    "Store",
    "StoreBusyError",
    "StoreDamagedError",
    "StoreUnwritableError",
]
