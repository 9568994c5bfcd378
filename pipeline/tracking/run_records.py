"""What a run and its tasks are about, and how they ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = ["RunDescription", "RunEnd", "Status", "TaskRecord", "storable_text"]

Status = Literal["FINISHED", "FAILED", "KILLED"]

_MAX_TEXT_LENGTH = 5000


@dataclass(frozen=True)
class RunDescription:
    """What a parent run is about.

    Attributes
    ----------
    run_dir : Path
        Directory of the run's results.
    config_text : str
        Resolved configuration, as YAML.
    config_digest : str
        Its digest.
    parameters : mapping
        Settings worth a column of their own.
    dataset_digest : str or None
        Fingerprint of the test information sets, where it is known at the start.
    """

    run_dir: Path
    config_text: str
    config_digest: str
    parameters: Mapping[str, str | int | float | bool]
    dataset_digest: str | None


@dataclass(frozen=True)
class TaskRecord:
    """One finished task: a forecaster on a fold with a seed.

    Attributes
    ----------
    forecaster : str
        Name of the forecaster.
    fold, seed : int
        Number of the fold, and the seed.
    digest : str
        Digest of all that the result depends on.
    parameters : mapping
        Settings of the forecaster, without the four names above.
    metrics : mapping of str to float
        Final scores.
    curves : mapping of str to sequence of (int, float)
        Step and value, such as one validation loss per epoch. No name may be one of
        `metrics` too, since a store would take both for one series.
    started, ended : float
        Unix time in seconds.
    artifacts : sequence of Path
        Files and directories to keep with the run.

    Raises
    ------
    ValueError
        If a name is used twice.
    """

    forecaster: str
    fold: int
    seed: int
    digest: str
    parameters: Mapping[str, str | int | float | bool]
    metrics: Mapping[str, float]
    curves: Mapping[str, Sequence[tuple[int, float]]]
    started: float
    ended: float
    artifacts: Sequence[Path]

    def __post_init__(self) -> None:
        if shared := self.task.keys() & self.parameters.keys():
            raise ValueError(
                f"parameters must leave {', '.join(self.task)} to the task; got "
                f"{', '.join(sorted(shared))}. Rename them."
            )
        if shared := self.metrics.keys() & self.curves.keys():
            raise ValueError(
                f"metrics and curves must have different names; got "
                f"{', '.join(sorted(shared))} in both. Rename the final score."
            )

    @property
    def task(self) -> dict[str, str | int]:
        """The four names that tell the task, with their values."""
        return {
            "forecaster": self.forecaster,
            "fold": self.fold,
            "seed": self.seed,
            "digest": self.digest,
        }


@dataclass(frozen=True)
class RunEnd:
    """How a run ended.

    Attributes
    ----------
    status : {"FINISHED", "FAILED", "KILLED"}
        MLflow's word for it.
    reason : str
        Why it is not finished; empty if it is.
    """

    status: Status
    reason: str

    @classmethod
    def of(cls, error: BaseException | None, *, is_last_stage_done: bool) -> RunEnd:
        """Judge an end by the exception and by whether the last stage was done.

        Ctrl-C makes a run KILLED. Training loops that catch Ctrl-C leave with
        SystemExit, so the cause of such an exit counts.
        """
        if error is None:
            if is_last_stage_done:
                return cls("FINISHED", "")
            return cls("FAILED", "ended before its last stage")
        cause: BaseException | None = error
        while isinstance(cause, SystemExit):
            cause = cause.__cause__ or cause.__context__
        reason = storable_text(f"{type(error).__name__}: {error}")
        return cls(
            "KILLED" if isinstance(cause, KeyboardInterrupt) else "FAILED", reason
        )


def storable_text(text: str) -> str:
    """First 5000 characters, without the halves of pairs that no file can hold."""
    return text[:_MAX_TEXT_LENGTH].encode(errors="backslashreplace").decode()
