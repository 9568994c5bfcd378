"""Real `infoset stream` processes that start in milliseconds, to be fed and killed.

Run as a script this is a server: it imports everything once and forks a process for each
command line. `StreamServer` talks to it.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

_LONGEST = 1 << 16


@dataclass
class StreamProcess:
    """A running command.

    Attributes
    ----------
    pid : int
    stdin : int
        Its own; see `send`.
    stdout : file
    notices : Path
        What it writes to standard error.
    """

    pid: int
    stdin: int
    stdout: BinaryIO
    notices: Path
    server: StreamServer

    def send(self, content: bytes) -> None:
        """Write to its standard input, all of it."""
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(self.stdin, rest) :]

    def close(self) -> None:
        """End its standard input."""
        os.close(self.stdin)

    def wait_for(self, number: int) -> list[bytes]:
        """Read what it says until it has acknowledged a line of its feed."""
        said = []
        for line in self.stdout:
            said.append(line.rstrip(b"\n"))
            told = json.loads(line)
            if told.get("ack", told.get("line")) >= number:
                return said
        raise AssertionError(self.notices.read_text())

    def kill(self, signal: int) -> None:
        """Send a signal."""
        os.kill(self.pid, signal)

    def wait(self) -> int:
        """Wait for the end; return the exit code, negative if killed."""
        return self.server.ask({"wait": self.pid})

    def communicate(self, content: bytes = b"") -> tuple[int, list[bytes]]:
        """Feed all lines, close the feed; return the exit code and what was said.

        The content must fit a pipe.
        """
        self.send(content)
        self.close()
        said = self.stdout.read().splitlines()
        self.stdout.close()
        return self.wait(), said


class StreamServer:
    """Starts commands; everything that they need is imported already.

    Attributes
    ----------
    careless : bool
        Plants a fault into what is started from then on: its journal keeps nothing.
    """

    careless = False

    def __enter__(self) -> StreamServer:
        own, other = socket.socketpair()
        self._socket = own
        self._number = 0
        self._server = subprocess.Popen(
            [sys.executable, __file__, str(other.fileno())],
            pass_fds=[other.fileno()],
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        other.close()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()
        self._server.wait()

    def start(self, *arguments: str | Path, folder: Path) -> StreamProcess:
        """Start `infoset ARGUMENTS` in a folder; notices go to a file there."""
        self._number += 1
        notices = folder / f"notices-{self._number}.jsonl"
        read, stdin = os.pipe()
        stdout, write = os.pipe()
        error = os.open(notices, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        given = [read, write, error]
        request = {
            "start": list(map(str, arguments)),
            "folder": str(folder),
            "careless": self.careless,
        }
        pid = self.ask(request, given)
        for file in given:
            os.close(file)
        return StreamProcess(pid, stdin, os.fdopen(stdout, "rb"), notices, self)

    def run(
        self, *arguments: str | Path, folder: Path, content: bytes = b""
    ) -> tuple[int, list[bytes], str]:
        """Run a command to its end; return the exit code, what it said, its notices."""
        process = self.start(*arguments, folder=folder)
        code, said = process.communicate(content)
        return code, said, process.notices.read_text()

    def ask(self, request: dict[str, object], files: list[int] | None = None) -> int:
        """Send a request to the server; return its answer."""
        socket.send_fds(self._socket, [json.dumps(request).encode()], files or [])
        return int(self._socket.recv(_LONGEST))


def _serve(connection: socket.socket) -> None:
    # Imported once, for all commands.
    from infoset.pipeline import cli  # noqa: PLC0415
    from infoset.pipeline.live import command, stored_model  # noqa: F401, PLC0415
    from infoset.pipeline.live.journal import Journal  # noqa: PLC0415

    while True:
        content, files, _, _ = socket.recv_fds(connection, _LONGEST, 3)
        if not content:
            return
        request = json.loads(content)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            answer = os.waitstatus_to_exitcode(status)
        else:
            answer = os.fork()
            if answer == 0:
                connection.close()
                os.chdir(request["folder"])
                if request["careless"]:
                    Journal.append = lambda *_, **__: None  # type: ignore[method-assign]
                _end_with(request["start"], files, cli.main)
            for file in files:
                os.close(file)
        connection.send(str(answer).encode())


def _end_with(arguments: list[str], files: list[int], main: object) -> None:
    code: object = 1
    for target, file in enumerate(files):
        os.dup2(file, target)
        os.close(file)
    try:
        sys.argv = ["infoset", *arguments]
        if callable(main):
            main()
    except SystemExit as end:
        code = end.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
