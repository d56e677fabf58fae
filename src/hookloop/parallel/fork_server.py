"""A process that has imported torch already, and forks the ranks: they start in milliseconds.

``python -m hookloop.parallel.fork_server FILE MODULE...`` imports the modules, and does what the
launcher asks for on the socket with the number FILE. It computes nothing and starts no thread, so
that a copy of it is as good as a new process.
"""

from __future__ import annotations

import atexit
import json
import os
import runpy
import select
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

LONGEST = 65_536
"""How many bytes are read at once."""


def send(connection: socket.socket, message: Mapping[str, object]) -> None:
    """Send a message as a line of JSON."""
    connection.sendall(json.dumps(message).encode() + b"\n")


class Lines:
    """Reads messages from a socket.

    Args:
        connection: A connected socket.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._rest = b""

    def receive(self) -> list[dict[str, Any]]:
        """Return the messages of what has arrived; raise an EOFError when no more can come."""
        chunk = self._socket.recv(LONGEST)
        if not chunk:
            raise EOFError
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        return [json.loads(line) for line in lines]


def main(number: int, modules: Sequence[str]) -> None:
    """Import modules, then fork ranks until the launcher has ended."""
    connection = socket.socket(fileno=number)
    for name in modules:
        with suppress(ImportError):  # Whoever needs it says so.
            import_module(name)
    reader, writer = os.pipe()
    for end in (reader, writer):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    lines = Lines(connection)
    send(connection, {"ready": os.getpid()})
    with suppress(EOFError, ConnectionError):
        while True:
            ready, _, _ = select.select([connection.fileno(), reader], [], [])
            if connection.fileno() in ready:
                for task in lines.receive():
                    child = os.fork()
                    if child == 0:
                        for mine in (reader, writer):
                            os.close(mine)
                        connection.close()
                        _become(task)
                    send(connection, {"started": child, "name": task["name"]})
            with suppress(BlockingIOError):
                os.read(reader, LONGEST)
            _report_ended(connection)
    os._exit(0)  # The system ends the ranks with it.


def _report_ended(connection: socket.socket) -> None:
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            send(connection, {"ended": found[0], "code": os.waitstatus_to_exitcode(found[1])})


def _become(task: Mapping[str, Any]) -> NoReturn:
    """Be a new process with this task."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        for name in ("SIGCHLD", "SIGINT"):
            number = signal.Signals[name]
            is_interrupt = number == signal.SIGINT
            signal.signal(number, signal.default_int_handler if is_interrupt else signal.SIG_DFL)
        os.setsid()
        os.environ.clear()
        os.environ.update(task["environment"])
        for stream, path in zip((sys.stdout, sys.stderr), task["outputs"], strict=True):
            if path is not None:
                file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                os.dup2(file, stream.fileno())
                os.close(file)
                stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        if "numpy" in sys.modules:  # Python's own generator is new in each fork.
            sys.modules["numpy"].random.seed()
        code = run(task["arguments"])
    except BaseException as error:  # noqa: BLE001 - as Python ends
        sys.excepthook(*sys.exc_info())
        code = 128 + signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    finally:
        with suppress(BaseException):
            _end_as_python_does()
        os._exit(code)


def _end_as_python_does() -> None:
    """Do what is to be done at the end, but do not take modules apart: that takes a second."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()


def run(arguments: Sequence[str]) -> int:
    """Run a script or a module, as Python would with these arguments; return the exit code."""
    try:
        if arguments[0] == "-m":
            sys.argv = list(arguments[1:])
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = list(arguments)
            sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
            runpy.run_path(arguments[0], run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        sys.stderr.write(f"{end.code}\n")
        return 1
    return 0


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
