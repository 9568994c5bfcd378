"""What earlier runs left behind: finished, cut off, or RUNNING without a process."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from .processes import ProcessIdentity
from .store import TrackingStore
from .store_file import StoreFile

__all__ = ["RunMemo", "close_stale_runs", "find_interrupted", "identity_tags"]

_FILE_NAME = "tracking.json"


@dataclass(frozen=True)
class RunMemo:
    """Note in a run's directory that says under which id it was logged as finished.

    Attributes
    ----------
    uri, experiment : str
        The store, with an absolute path, and the experiment in it.
    run_dir, config_digest : str
        Absolute path of the directory and digest of the configuration.
    run_id : str
        Id of the parent run.
    """

    uri: str
    experiment: str
    run_dir: str
    config_digest: str
    run_id: str

    def write(self) -> None:
        """Write the note, whole or not at all."""
        path = Path(self.run_dir, _FILE_NAME)
        draft = path.with_name(f"{path.name}.tmp")
        text = json.dumps(asdict(self), indent=2, sort_keys=True)
        draft.write_text(f"{text}\n", encoding="utf-8")
        draft.replace(path)

    @classmethod
    def find(
        cls, uri: str, experiment: str, run_dir: Path, config_digest: str
    ) -> RunMemo | None:
        """Read the note of a directory, if it speaks of this and the store agrees.

        Costs two small reads; MLflow is not imported.
        """
        file = StoreFile(uri)
        directory = run_dir.absolute()
        found = _read(directory)
        run_id = str(found.get("run_id"))
        memo = cls(file.uri, experiment, str(directory), config_digest, run_id)
        return memo if found == asdict(memo) and file.has_finished(run_id) else None

    @classmethod
    def of_folder(cls, run_dir: Path) -> RunMemo | None:
        """Read the note of a directory, wherever it is now, if the store agrees."""
        found = _read(run_dir)
        names = {field.name for field in fields(cls)}
        if found.keys() != names:
            return None
        memo = cls(**{name: str(found[name]) for name in names})
        return memo if StoreFile(memo.uri).has_finished(memo.run_id) else None


def _read(directory: Path) -> dict[str, object]:
    """Return what the note of a directory says; nothing where there is none."""
    try:
        found = json.loads((directory / _FILE_NAME).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def identity_tags(run_dir: str) -> dict[str, str]:
    """Tags that tell to whom a run belongs: directory, host, process."""
    process = ProcessIdentity.current()
    return {
        "infoset.run_dir": run_dir,
        "infoset.host": process.host,
        "infoset.pid": str(process.pid),
        "infoset.process_start": process.start,
    }


def close_stale_runs(store: TrackingStore, run_dir: str) -> list[str]:
    """Close as KILLED, with a note, the RUNNING runs that nobody carries on.

    These are the runs of this tool whose process has gone from this host, and those
    of another host in the same directory: processes there cannot be asked, but whoever
    starts in a directory takes it over. Runs of living processes stay as they are.

    Parameters
    ----------
    store : TrackingStore
        A connected store; all its experiments are searched.
    run_dir : str
        Absolute path of the directory that the caller is about to use.

    Returns
    -------
    list of str
        Ids of the closed runs.
    """
    closed = []
    for run in list(store.runs("attributes.status = 'RUNNING'", all_experiments=True)):
        if note := _why_stale(run.tags, run_dir):
            now = time.time()
            store.end_run(run.run_id, "KILLED", ended=now)
            store.log(run.run_id, at=now, tags={"infoset.note": note})
            closed.append(run.run_id)
    return closed


def find_interrupted(
    store: TrackingStore, run_dir: str, config_digest: str
) -> str | None:
    """Find the newest parent run of a directory and configuration, if it was cut off.

    Returns
    -------
    str or None
        Id of the run; None where there is none or it is FINISHED or still alive.
    """
    condition = f"tags.`infoset.config_digest` = '{config_digest}'"
    for run in store.runs(condition, all_experiments=False):
        if run.tags.get("infoset.run_dir") == run_dir:
            return run.run_id if run.status in {"FAILED", "KILLED"} else None
    return None


def _why_stale(tags: Mapping[str, str], run_dir: str) -> str | None:
    pid = tags.get("infoset.pid", "")
    if not pid.isdecimal():  # not a run of this tool
        return None
    host = tags.get("infoset.host", "")
    owner = ProcessIdentity(host, int(pid), tags.get("infoset.process_start", ""))
    if owner.host == ProcessIdentity.current().host:
        gone = f"closed at the next start: process {pid} on {host} had gone"
        return gone if owner.is_gone() else None
    if tags.get("infoset.run_dir") == run_dir:
        return f"closed when another host took the directory over from {host}"
    return None
