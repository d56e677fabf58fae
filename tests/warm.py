"""A ``hookloop`` command that starts at once, for tests that start many.

Importing torch takes seconds, in each process again. A server imports it once; for each command it
forks a process of its own, with the directory, environment and streams of the caller.
"""

import array
import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path

CLIENT = r"""
import array, json, os, signal, socket, sys

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1)
server = socket.socket(socket.AF_UNIX)
server.connect({path!r})
task = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
streams = array.array("i", [0, 1, 2])
server.sendmsg([len(task).to_bytes(8, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
server.sendall(task)
answers = server.makefile("r")
pid = int(answers.readline())
for number in SIGNALS:
    signal.signal(number, lambda number, frame: os.kill(pid, number))
for stream in (0, 1, 2):  # The reader of a pipe sees its end when the command has ended.
    os.close(stream)
code = int(answers.readline())
if code < 0:
    if -code != signal.SIGKILL:  # Which has no handler.
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
"""


@cache
def command() -> str:
    """Start the server, once in each process that tests; return the path of the command."""
    home = Path(tempfile.mkdtemp(prefix="hookloop-warm-"))
    address = home / "socket"
    server = subprocess.Popen(
        [sys.executable, __file__, str(address)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    atexit.register(server.kill)  # Not in the processes of commands, which the server forks.
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    script = home / "hookloop"
    script.write_text(f"#!{sys.executable} -IS\n{CLIENT.replace('{path!r}', repr(str(address)))}")
    script.chmod(0o755)
    return str(script)


def run(*arguments: str, cwd: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, and return what it printed."""
    return subprocess.run(
        [command(), *arguments],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def serve(address: str) -> int:
    """Answer one caller after the other; return the exit code in the process of a command."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    os.write(1, b"ready\n")
    parent = os.getppid()
    listener.settimeout(5)
    while os.getppid() == parent:  # Nobody asks any more when the tests have ended.
        try:
            caller, _ = listener.accept()
        except TimeoutError:
            continue
        if os.fork() == 0:
            listener.close()
            return _answer(caller)
        caller.close()
        _forget_ended()
    return 0


def _forget_ended() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _answer(caller: socket.socket) -> int:
    """Fork the process of the command; report its number and then its exit code."""
    caller.setblocking(True)
    size, streams = _receive(caller)
    text = b""
    while len(text) < size:
        text += caller.recv(size - len(text))
    arguments, directory, environment = json.loads(text)
    pid = os.fork()
    if pid == 0:
        caller.close()
        return _become(arguments, directory, environment, streams)
    for stream in streams:
        os.close(stream)
    caller.sendall(f"{pid}\n".encode())
    _, status = os.waitpid(pid, 0)
    caller.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _receive(caller: socket.socket) -> tuple[int, list[int]]:
    streams = array.array("i")
    data, ancillary, _, _ = caller.recvmsg(8, socket.CMSG_SPACE(3 * streams.itemsize))
    for _, _, part in ancillary:
        streams.frombytes(part)
    return int.from_bytes(data, "big"), list(streams)


def _become(
    arguments: list[str], directory: str, environment: dict[str, str], streams: list[int]
) -> int:
    """Be the process of a command: as if it had been started with all modules imported."""
    from hookloop.cli.main import main

    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    places = [place for place in environment.get("PYTHONPATH", "").split(os.pathsep) if place]
    sys.path[:0] = [directory, *places]
    sys.argv = ["hookloop", *arguments]
    code: object = 0
    try:
        main()
    except SystemExit as end:
        code = end.code
    _leave(code if isinstance(code, int) else 1)
    return 0


def _leave(code: int) -> None:
    """End as Python does, but do not take the modules apart: with torch that takes a second."""
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.path.pop(0)  # The directory of this file, which a command would not have.
    import torch  # noqa: F401

    import hookloop.cli.train
    import hookloop.config.build  # noqa: F401

    sys.exit(serve(sys.argv[1]))
