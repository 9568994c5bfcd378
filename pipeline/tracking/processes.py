"""Which process wrote something, and whether that process is still there."""

from __future__ import annotations

import os
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ProcessIdentity"]


@dataclass(frozen=True)
class ProcessIdentity:
    """One process of one machine, told apart from later ones with the same number.

    Attributes
    ----------
    host : str
        Name of the machine.
    pid : int
        Process number, at least 1.
    start : str
        Start of the process in clock ticks since boot; empty where the system does
        not tell it.
    """

    host: str
    pid: int
    start: str

    @classmethod
    def current(cls) -> ProcessIdentity:
        """Identify the process that asks."""
        return cls(socket.gethostname(), os.getpid(), _living_start(os.getpid()) or "")

    def is_gone(self) -> bool:
        """Tell whether the process has ended; to be asked on its own host.

        Returns
        -------
        bool
            True if it ended, is a zombie, or if its number belongs to another process
            by now.
        """
        if self.start:
            return _living_start(self.pid) != self.start
        return not _answers(self.pid)


def _living_start(pid: int) -> str | None:
    """Start time of a living process, from field 22 of `proc_pid_stat(5)`."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The command stands in brackets and may hold blanks and brackets itself.
    state, *others = text.rpartition(")")[2].split()
    return None if state in {"Z", "X"} else others[18]


def _answers(pid: int) -> bool:
    if sys.platform == "win32":  # where os.kill ends the process it asks for
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's process, so there is one
        return True
    return True
