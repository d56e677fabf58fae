"""The state of a git repository, asked of the program itself."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile

TIMEOUT = 30.0
"""Seconds after which git is given up: a repository may be on a slow disk."""

STATUS = ("status", "--porcelain=v2", "--branch", "--untracked-files=no")
"""One command for commit and changes, because starting git takes longer than its work."""

MOST = 1_000_000
"""How many bytes of an answer are read."""


def _command(root: str | Path, arguments: tuple[str, ...]) -> list[str] | None:
    program = shutil.which("git")
    # Without a lock: a second program may be working in the same repository.
    return (program and [program, "--no-optional-locks", "-C", str(root), *arguments]) or None


def git(root: str | Path, *arguments: str) -> str:
    """Return what a git command prints; empty without git, or outside of a repository."""
    command = _command(root, arguments)
    if command is None:
        return ""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False, timeout=TIMEOUT
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


class Repository:
    """The state of the repository of a directory, which git finds out while others work.

    Args:
        root: The directory.
    """

    def __init__(self, root: str | Path) -> None:
        self._answer = TemporaryFile()  # noqa: SIM115 - a pipe would fill up and stop git
        self._process: subprocess.Popen[bytes] | None = None
        command = _command(root, STATUS)
        if command is not None:
            with suppress(OSError):
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=self._answer,
                    stderr=subprocess.DEVNULL,
                )

    def is_known(self, timeout: float = 0.0) -> bool:
        """Wait for git, up to some seconds; return whether it has ended."""
        if self._process is None:
            return True
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        return True

    def state(self) -> dict[str, object]:
        """Return the commit, and whether a file under version control has changed since.

        It is empty outside of a repository, before the first commit, and if git has not ended yet:
        it is ended then.
        """
        process, self._process = self._process, None
        with self._answer:
            if process is None:
                return {}
            if process.poll() is None:
                process.kill()
                process.wait()
            self._answer.seek(0)
            text = self._answer.read(MOST).decode("utf-8", "replace")
        return _parsed(text) if process.returncode == 0 else {}


def _parsed(text: str) -> dict[str, object]:
    r"""Read the answer to `STATUS`.

    >>> _parsed("# branch.oid 51f0\n# branch.head main\n1 .M N... train.py\n")
    {'commit': '51f0', 'dirty': True}
    """
    lines = text.splitlines()
    commit = next((line.split()[-1] for line in lines if line.startswith("# branch.oid ")), "")
    if not commit or commit == "(initial)":
        return {}
    return {"commit": commit, "dirty": any(not line.startswith("#") for line in lines)}
