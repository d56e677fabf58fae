"""What a page says that a command or a script prints, compared with what it does print.

``...`` on a page stands for any text. Numbers with a decimal point may differ a little, because
another processor rounds another way; everything else is compared word by word.
"""

from __future__ import annotations

import difflib
import math
import os
import re
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

from tests import warm

_PART = re.compile(r"\s+\.\.\.\s+|\.\.\.|(?<![\w.])-?\d+\.\d+(?:e[+-]?\d+)?|\s+|[^\s.\d-]+|.")
_NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?")
_FILE = re.compile(r"# ((?:[\w-]+/)*[\w-]+\.(?:py|yaml))\n")
_FAILS = re.compile(r"^error:|\bKilled\b|^[\w.]+Error: ", flags=re.MULTILINE)
_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def assert_printed(expected: str, printed: str, where: str) -> None:
    """Raise unless ``printed`` is what the page shows, with the differences side by side."""
    printed = _CODES.sub("", printed).strip()
    pattern = "".join(_as_pattern(part) for part in _PART.findall(expected.strip()))
    match = re.fullmatch(pattern, printed, flags=re.DOTALL)
    shown = [float(part) for part in _PART.findall(expected) if _NUMBER.fullmatch(part)]
    if match and all(
        math.isclose(one, float(other), rel_tol=0.05, abs_tol=0.006)
        for one, other in zip(shown, match.groups(), strict=True)
    ):
        return
    lines = difflib.unified_diff(
        expected.strip().splitlines(), printed.splitlines(), "the page", "printed", lineterm=""
    )
    raise AssertionError(f"{where}:\n" + "\n".join(lines))


def _as_pattern(part: str) -> str:
    if part.strip() == "...":  # Between spaces it may stand for nothing.
        return ".*?" if part == "..." else r"\s+(?:.*?\s+)?"
    if _NUMBER.fullmatch(part):
        return r"(-?\d+\.?\d*(?:e[+-]?\d+)?)"
    return r"\s+" if part.isspace() else re.escape(part)


def file_of(text: str) -> str | None:
    """Return the name of the file that a block is, if it begins with one: ``# train.py``."""
    match = _FILE.match(text)
    return match[1] if match else None


def write_file(text: str, directory: Path) -> None:
    """Write a block that is a file."""
    path = directory / str(file_of(text))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def run_console(block: str, directory: Path, where: str) -> None:
    """Run the commands of a block one by one; each must print what stands below it.

    A command that shows an error, or that it was killed, must fail, and every other succeed. One
    that ends with ``&`` runs on; a board is ended by Ctrl-C once it has printed what is shown.
    """
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, expected = _command_and_output(part)
        place = f"{where}: $ {command}"
        if command.startswith("hookloop board") and find_spec("hookloop_board") is None:
            continue  # It is in a package of its own; the engine is tested without it, too.
        if command.startswith("hookloop board") and "--export" not in command:
            _serve(command, expected, directory, place)
            continue
        code, printed = _run(command, directory)
        if code in (-signal.SIGKILL, 128 + signal.SIGKILL):
            printed += "Killed\n"  # An interactive shell says it.
        if expected.strip():
            assert_printed(expected, printed, place)
        fails = _FAILS.search(expected) is not None
        assert (code != 0) == fails, f"{place}: {code}\n{printed}"
        if command.endswith("&"):
            _wait_for_run(command, directory)


def run_script(script: str, directory: Path, where: str) -> str:
    """Run a script, which must succeed, and return what it printed."""
    code, printed = _run(f"set -e\n{script}", directory)
    assert code == 0, f"{where}: {code}\n{printed[-4000:]}"
    return printed


def _environment() -> dict[str, str]:
    """Return that of a command: first what starts at once, then what is installed here."""
    places = [
        str(Path(warm.command()).parent),
        os.environ["PATH"],
        str(Path(sys.executable).parent),
    ]
    return os.environ | {"PATH": os.pathsep.join(places), "COLUMNS": "200"}


def _run(command: str, directory: Path) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=directory,
        env=_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    return done.returncode, done.stdout


def _serve(command: str, expected: str, directory: Path, where: str) -> None:
    server = subprocess.Popen(
        command.split(), cwd=directory, env=_environment(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert server.stdout is not None
    printed = "".join(server.stdout.readline() for _ in expected.strip().splitlines())
    server.send_signal(signal.SIGINT)
    rest, _ = server.communicate(timeout=60)
    assert_printed(expected, printed + rest, where)
    assert server.returncode == 0, f"{where}: {server.returncode}"


def _wait_for_run(command: str, directory: Path) -> None:
    """Wait until a training has begun, as long as a reader takes to type the next command."""
    run_dir = re.search(r"run_dir=(\S+)", command)
    assert run_dir is not None, command
    end = time.monotonic() + 120
    while not (directory / run_dir[1] / "metrics.jsonl").exists():
        assert time.monotonic() < end, f"{command}: it does not begin"
        time.sleep(0.05)


def _command_and_output(part: str) -> tuple[str, str]:
    """Split at the end of the command; a line that ends with a backslash continues."""
    lines = part.split("\n")
    end = 1
    while lines[end - 1].endswith("\\"):
        end += 1
    return "\n".join(lines[:end]), "\n".join(lines[end:])
