"""The processes of the ranks of this node: how they are started, watched, shown and ended."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from hookloop.parallel import fork_server

TERMINATE_AFTER, KILL_AFTER = 1.0, 6.0
"""Seconds in which the other ranks end when one has failed: by themselves, and after SIGTERM.

They notice broken connections at once. What they do afterwards cannot save anything.
"""

START_LIMIT = 300.0
"""Seconds for which the server may import torch, on a slow disk."""


class Starter:
    """Starts processes: new ones, or on Linux forks of one that has imported torch.

    Args:
        modules: What is imported before the forks; nothing is forked without any.
    """

    def __init__(self, modules: Sequence[str] = ()) -> None:
        self._modules = modules if sys.platform == "linux" else ()
        self._server: subprocess.Popen[bytes] | None = None
        self._forked = 0
        self._connection: socket.socket | None = None
        self._lines: fork_server.Lines | None = None
        self._own: dict[int, subprocess.Popen[bytes]] = {}
        self._pids: dict[str, int] = {}
        self._codes: dict[int, int] = {}

    def warm_up(self, environment: Mapping[str, str]) -> None:
        """Start the server, once, so that it imports what ranks need.

        Args:
            environment: What is read when modules are imported.
        """
        if not self._modules or self._server is not None:
            return
        mine, its = socket.socketpair()
        with its:
            command = [sys.executable, "-m", fork_server.__name__, str(its.fileno())]
            self._server = subprocess.Popen(
                [*command, *self._modules],
                env={**os.environ, **environment},
                pass_fds=[its.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is passed on by the launcher.
            )
        self._connection, self._lines = mine, fork_server.Lines(mine)

    def fork_from_here(self) -> None:
        """Let ranks be forks of this process, which has imported what they need; on Linux.

        It must have no threads yet.
        """
        if sys.platform != "linux":
            return
        mine, its = socket.socketpair()
        self._forked = os.fork()
        if not self._forked:
            mine.close()
            os.setsid()
            fork_server.main(its.detach(), ())
        its.close()
        self._connection, self._lines = mine, fork_server.Lines(mine)

    @property
    def parent(self) -> int:
        """The process with which the ranks end."""
        return self._forked or (os.getpid() if self._server is None else self._server.pid)

    def start(
        self,
        name: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        output: Path | None,
    ) -> int:
        """Start Python with some arguments; return the number of the process.

        Args:
            name: What tells it from the others.
            arguments: Those for Python.
            environment: All its variables.
            output: Two files ``.out`` and ``.err`` that take what it prints; None to print here.
        """
        suffixes = (".out", ".err")
        outputs = [None if output is None else str(output.with_suffix(one)) for one in suffixes]
        if self._connection is None:
            return self._start_new(arguments, environment, outputs)
        task = {"name": name, "arguments": list(arguments), "environment": dict(environment)}
        fork_server.send(self._connection, {**task, "outputs": outputs})
        end = time.monotonic() + START_LIMIT
        while name not in self._pids:
            if time.monotonic() > end:
                raise TimeoutError(f"no rank was started within {START_LIMIT:g} s")
            self._receive(1.0)
        return self._pids.pop(name)

    def _start_new(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        outputs: Sequence[str | None],
    ) -> int:
        with ExitStack() as stack:
            files = [one and stack.enter_context(open(one, "ab")) for one in outputs]
            process = subprocess.Popen(
                [sys.executable, *arguments],
                env=environment,
                stdout=files[0] or None,
                stderr=files[1] or None,
                start_new_session=True,
            )
        self._own[process.pid] = process
        return process.pid

    def ended(self) -> dict[int, int]:
        """Return the exit codes of the processes that have ended since the last call."""
        self._receive(0.0)
        found, self._codes = self._codes, {}
        for pid, process in [*self._own.items()]:
            if process.poll() is not None:
                found[pid] = process.returncode
                del self._own[pid]
        return found

    def _receive(self, patience: float) -> None:
        if self._connection is None or self._lines is None:
            return
        self._connection.settimeout(patience)
        try:
            for message in self._lines.receive():
                if "started" in message:
                    self._pids[message["name"]] = message["started"]
                elif "ended" in message:
                    self._codes[message["ended"]] = message["code"]
        except (TimeoutError, BlockingIOError):
            return
        except (EOFError, ConnectionError) as error:
            raise ChildProcessError("the process that starts the ranks has ended") from error

    def close(self) -> None:
        """End the server, and with it whatever it has started."""
        if self._connection is not None:
            self._connection.close()
        if self._server is not None:
            self._server.kill()  # It may be busy with imports.
            self._server.wait()
        elif self._forked:
            os.waitpid(self._forked, 0)
        self._connection = self._server = None
        self._forked = 0

    def __enter__(self) -> Starter:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()


class Processes:
    """The ranks of one attempt on this node.

    Args:
        starter: Starts them.
        arguments: Those for Python.
        environments: The variables of each.
        labels: What stands before each line that they print; None for one that prints here itself.
        folder: A directory for what they print.
    """

    def __init__(
        self,
        starter: Starter,
        arguments: Sequence[str],
        environments: Sequence[Mapping[str, str]],
        labels: Sequence[str | None],
        folder: Path,
    ) -> None:
        self._starter = starter
        self._running: dict[int, int] = {}
        self._shown: list[_Shown] = []
        self._failed_at: float | None = None
        self._told = self._killed = False
        self.failures: dict[int, int] = {}
        """The exit codes of those that failed, in the order in which it was noticed."""
        self.lost = 0
        """How many were killed, by somebody else."""
        folder.mkdir(parents=True, exist_ok=True)
        for place, (environment, label) in enumerate(zip(environments, labels, strict=True)):
            output = None if label is None else folder / str(place)
            pid = starter.start(str(output or place), arguments, environment, output)
            self._running[pid] = place
            if output is not None and label is not None:
                self._shown += [_Shown(output, ".out", label), _Shown(output, ".err", label)]

    def look(self) -> bool:
        """Return whether some of them still run; once one has failed, end the others."""
        for pid, code in self._starter.ended().items():
            if pid in self._running:
                place = self._running.pop(pid)
                if code:
                    self.failures[place] = code
                    self.lost += code < 0 and not self._told
                    self._kill_group(pid)  # What loads data for it.
        if self.failures and self._running:
            self.end_soon()
        for one in self._shown:
            one.show()
        return bool(self._running)

    def end_soon(self) -> None:
        """End those that run: in a moment by SIGTERM, then by SIGKILL."""
        now = time.monotonic()
        if self._failed_at is None:
            self._failed_at = now
        if not self._told and now > self._failed_at + TERMINATE_AFTER:
            self._told = True
            self._signal(signal.SIGTERM)
        if not self._killed and now > self._failed_at + KILL_AFTER:
            self._killed = True
            self._kill()

    def _signal(self, number: int) -> None:
        for pid in self._running:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def _kill(self) -> None:
        """Kill what runs, with the processes that load data."""
        for pid in self._running:
            self._kill_group(pid)

    @staticmethod
    def _kill_group(pid: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            if os.name == "nt":
                os.kill(pid, signal.SIGTERM)
            else:
                os.killpg(pid, signal.SIGKILL)

    def close(self) -> None:
        """Kill what is left, and show the rest of what was printed."""
        self._kill()
        for one in self._shown:
            one.show(is_last=True)


class _Shown:
    """What a rank prints on one of its streams, shown here line by line."""

    def __init__(self, output: Path, suffix: str, label: str) -> None:
        self._path = output.with_suffix(suffix)
        self._is_error = suffix == ".err"
        self._label = label
        self._place = 0

    def show(self, *, is_last: bool = False) -> None:
        """Show the lines that are new, and at the end what is not a whole line."""
        with suppress(FileNotFoundError), self._path.open("rb") as file:
            file.seek(self._place)
            new = file.read()
            end = len(new) if is_last else new.rfind(b"\n") + 1
            self._place += end
            stream = sys.stderr if self._is_error else sys.stdout
            for line in new[:end].removesuffix(b"\n").split(b"\n") if end else ():
                print(self._label + line.decode(errors="replace"), file=stream, flush=True)
