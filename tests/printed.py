"""What a page says that a command or a script prints, held against what it does print.

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

    A command that shows an error, or that it was killed, must fail, and every other succeed.
    """
    path = os.pathsep.join(
        [str(Path(warm.command()).parent), str(Path(sys.executable).parent), os.environ["PATH"]]
    )
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, expected = _command_and_output(part)
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=directory,
            env=os.environ | {"PATH": path, "COLUMNS": "200"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )
        place = f"{where}: $ {command}"
        if done.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL):
            done.stdout += "Killed\n"  # An interactive shell says it.
        if expected.strip():
            assert_printed(expected, done.stdout, place)
        fails = _FAILS.search(expected) is not None
        assert (done.returncode != 0) == fails, f"{place}: {done.returncode}\n{done.stdout}"


def _command_and_output(part: str) -> tuple[str, str]:
    """Split at the end of the command; a line that ends with a backslash continues."""
    lines = part.split("\n")
    end = 1
    while lines[end - 1].endswith("\\"):
        end += 1
    return "\n".join(lines[:end]), "\n".join(lines[end:])
