"""The SQLite file of a tracking store: where it lies, and that it is whole."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from .calls import mlflow_calls

__all__ = ["StoreFile"]

_SCHEME = "sqlite:///"
_ARTIFACTS = "mlartifacts"


class StoreFile:
    """The place that a tracking URI names.

    Parameters
    ----------
    uri : str
        `sqlite:///` and a path; a relative one is resolved at once.

    Attributes
    ----------
    path : Path
        The file.
    uri : str
        The same place with an absolute path.
    artifacts : str
        `file:` URI of the directory for artifacts beside the file.

    Raises
    ------
    ValueError
        If `uri` is not of that form.
    """

    def __init__(self, uri: str) -> None:
        location = uri.removeprefix(_SCHEME)
        if not uri.startswith(_SCHEME) or location in {"", ":memory:"}:
            raise ValueError(
                f"tracking_uri must be {_SCHEME} and the path of a file; got {uri!r}. "
                f"Write for example {_SCHEME}mlflow.db."
            )
        self.path = Path(location).absolute()
        if set("?%") & set(str(self.path)):  # they have a meaning of their own there
            raise ValueError(
                f"tracking_uri must be a path without ? and %; got {self.path}. "
                f"Name a file in another directory."
            )
        self.uri = f"{_SCHEME}{self.path}"
        self.artifacts = (self.path.parent / _ARTIFACTS).as_uri()

    def prepare(self) -> None:
        """Make the store if there is none, else check that it can be written.

        A new file appears only when it is complete. Processes that start together on
        a place without a file therefore end up in the same store, and none meets one
        that is half made.

        Raises
        ------
        OSError
            If the file or its directory cannot be written.
        sqlite3.DatabaseError
            If the file is no MLflow store.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if not self.path.exists():
            self._create()
            return
        query = "SELECT count(*) FROM sqlite_master WHERE name = 'alembic_version'"
        with self.path.open("r+b"), closing(self._read_only()) as database:
            if not database.execute(query).fetchone()[0]:
                raise sqlite3.DatabaseError("it holds something else")

    def has_finished(self, run_id: str) -> bool:
        """Tell whether a run is FINISHED, from the file alone and without MLflow."""
        if not self.path.is_file():
            return False
        query = (
            "SELECT count(*) FROM runs WHERE run_uuid = ? AND status = 'FINISHED' "
            "AND lifecycle_stage = 'active'"
        )
        try:
            with closing(self._read_only()) as database:
                return bool(database.execute(query, [run_id]).fetchone()[0])
        except sqlite3.DatabaseError:  # not a store, or one with other tables
            return False

    def _create(self) -> None:
        """Make the tables in a draft, which a hard link turns into the store.

        The link is atomic and fails where another process was faster.
        """
        prefix = f".{self.path.name}-"
        with tempfile.TemporaryDirectory(prefix=prefix, dir=self.path.parent) as place:
            draft = Path(place) / self.path.name
            self._make_tables(f"{_SCHEME}{draft}")
            try:
                self.path.hardlink_to(draft)
            except OSError:  # another was faster, or there are no hard links here
                if not self.path.exists():
                    draft.replace(self.path)
        # MLflow keeps connections by URI: those to an earlier file of this name, since
        # deleted, would go on writing to the deleted file. This closes them.
        self._make_tables(self.uri)

    def _make_tables(self, uri: str) -> None:
        with mlflow_calls(self.path):  # the import warns too
            from mlflow.store.tracking.sqlalchemy_store import (  # noqa: PLC0415
                SqlAlchemyStore,
            )

            store = SqlAlchemyStore(  # type: ignore[no-untyped-call]
                uri, self.artifacts
            )
            store.engine.dispose()

    def _read_only(self) -> sqlite3.Connection:
        return sqlite3.connect(f"{self.path.as_uri()}?mode=ro", uri=True)
