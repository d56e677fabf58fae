"""``hookloop`` and ``python`` that start at once, for tests that start many.

Importing torch takes seconds, in each process again. A server imports it once; for each command it
forks a process of its own, with the directory, environment and streams of the caller. Not for tests
of what is imported, or of how Python itself starts and ends.
"""

import array
import atexit
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType

REAL = sys.executable
CLIENT = r"""
import array, json, os, signal, socket, sys

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1)
name = os.path.basename(sys.argv[0])
# Ranks and the trials of a sweep look whether their parent lives; what forks ranks gets a socket.
modules = {"hookloop.cli.search.sweep_process", "hookloop.parallel.fork_server"}
if name == "python" and ("RANK" in os.environ or modules & {*sys.argv}):
    os.execv({real!r}, [{real!r}, *sys.argv[1:]])
server = socket.socket(socket.AF_UNIX)
server.connect({path!r})
task = json.dumps([[name, *sys.argv[1:]], os.getcwd(), dict(os.environ)]).encode()
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
    """Start the server, once in each process that tests; return the path of ``hookloop``."""
    home = Path(tempfile.mkdtemp(prefix="hookloop-warm-"))
    address = home / "socket"
    server = subprocess.Popen(
        [REAL, __file__, str(address)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    atexit.register(server.kill)  # Not in the processes of commands, which the server forks.
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    for name in ("hookloop", "python"):
        script = home / name
        text = CLIENT.replace("{path!r}", repr(str(address))).replace("{real!r}", repr(REAL))
        script.write_text(f"#!{REAL} -IS\n{text}")
        script.chmod(0o755)
    return str(home / "hookloop")


def python() -> str:
    """Return the path of ``python``; a real one for what looks at its parent."""
    return str(Path(command()).with_name("python"))


def run(
    *arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``hookloop`` to its end, and return what it printed."""
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
    threading.Thread(target=_end_with, args=(caller, pid), daemon=True).start()
    _, status = os.waitpid(pid, 0)
    caller.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _end_with(caller: socket.socket, pid: int) -> None:
    """Kill the command when its caller was killed."""
    with suppress(ProcessLookupError):
        if not caller.recv(1):
            os.kill(pid, signal.SIGKILL)


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
    program, *arguments = arguments
    sys.executable = str(Path(sys.argv[1]).with_name("python"))  # What it starts, starts at once.
    sys.path[:0] = [directory, *places]
    code = 0
    try:
        if program == "python":
            _run_python(arguments)
        else:
            sys.argv = ["hookloop", *arguments]
            main()
    except SystemExit as end:
        code = _code_of(end)
    except BaseException as error:  # noqa: BLE001 - as Python ends
        sys.excepthook(*sys.exc_info())
        code = -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    _leave(code)
    return 0


def _run_python(arguments: list[str]) -> None:
    """Run what Python would run with these arguments."""
    match arguments:
        case ["-c", code, *_]:
            sys.argv = ["-c", *arguments[2:]]
            sys.modules["__main__"] = module = ModuleType("__main__")
            exec(compile(code, "<string>", "exec"), module.__dict__)
        case ["-m", name, *rest]:
            sys.argv = [name, *rest]
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        case [path, *_] if not path.startswith("-"):
            sys.argv = arguments
            sys.path[0] = os.path.dirname(os.path.abspath(path))
            runpy.run_path(path, run_name="__main__")
        case _:
            os.execv(REAL, [REAL, *arguments])


def _code_of(end: SystemExit) -> int:
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    print(end.code, file=sys.stderr)  # noqa: T201
    return 1


def _leave(code: int) -> None:
    """End as Python does, but do not take the modules apart: with torch that takes a second."""
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    sys.path.pop(0)  # The directory of this file, which a command would not have.
    import multiprocessing.spawn  # noqa: F401 - it keeps the real Python for its own processes

    import torch
    import torch._dynamo  # noqa: F401 - every optimizer imports it, for longer than torch itself

    import hookloop.cli.train.train
    import hookloop.config.build  # noqa: F401

    sys.exit(serve(sys.argv[1]))
