"""Find out from its lock whether the process that trains in a directory is alive.

A lock in the operating system is the surest sign: it ends with its process, and other hosts and
containers see it if the file system shares it. Otherwise the file names the process, its host, and
when the process started, so that a new process with the same number is not mistaken for it.
"""

from __future__ import annotations

import os
import re
import socket
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hookloop.runs.reading import opened_to_read

Life = Literal["alive", "dead", "unknown", "none"]
"""``unknown``: the process is on another host. ``none``: the directory has no lock."""

LONGEST = 400
# Every part is limited, because the file may hold anything.
_TEXT = re.compile(
    r"process ([1-9]\d{0,8}) on (\S{1,255}?)(?:, begun (\S{1,80}))?(?:, file (\d{1,20}))?"
)
_ZOMBIE = ("Z", "X")

# `struct flock`, which fcntl needs to query a lock. Its layout differs from system to system, and
# Python does not know it: type, whence, start, length, process on Linux, another order on macOS.
_LOCK_FORMS = {"linux": "hhqqi4x", "darwin": "qqihh"}


@dataclass(frozen=True)
class Holder:
    """The process that a lock names.

    Attributes:
        pid: The number of the process.
        host: The host on which it runs.
        begun: When it started, as the system counts; no other process with that number has the
            same; "" if unknown.
        file: The inode of the lock's file, which a copy of it does not have; 0 if unknown.
    """

    pid: int
    host: str
    begun: str = ""
    file: int = 0

    @classmethod
    def this(cls, file: int = 0) -> Holder:
        """Return this process, as the holder of the lock in a file."""
        return cls(os.getpid(), socket.gethostname(), _process(os.getpid())[1], file)

    @classmethod
    def read(cls, text: bytes) -> Holder | None:
        """Parse the text of a lock; return None if it is something else."""
        found = _TEXT.fullmatch(text.decode("utf-8", "replace").strip())
        return cls(int(found[1]), found[2], found[3] or "", int(found[4] or 0)) if found else None

    @property
    def text(self) -> str:
        """The text of the lock."""
        begun = f", begun {self.begun}" if self.begun else ""
        return f"{self}{begun}" + (f", file {self.file}" if self.file else "")

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def life_of(lock: Path) -> tuple[Life, Holder | None]:
    """Return whether the process that holds a lock is alive, and which process it is.

    Never call it for a lock of this process: POSIX releases a lock when its holder closes the file.
    """
    try:
        with opened_to_read(lock) as file:
            if _is_locked(file.fileno()):
                return "alive", Holder.read(file.read(LONGEST))
            holder = Holder.read(file.read(LONGEST))
            number = os.fstat(file.fileno()).st_ino
    except FileNotFoundError:
        return "none", None
    except (OSError, ValueError):
        return "unknown", None
    if holder is None or holder.file not in (0, number):  # A copy of the directory has no process.
        return "dead", None
    if holder.host != socket.gethostname():
        return "unknown", holder
    return ("alive" if _lives(holder) else "dead"), holder


def _is_locked(file: int) -> bool:
    """Return whether another process holds a lock on a file, according to the system."""
    form = _LOCK_FORMS.get(sys.platform)
    # The layouts are those of 64-bit systems.
    if form is None or struct.calcsize("P") != 8:
        return False
    try:
        import fcntl
    except ImportError:
        return False
    index = 0 if form.startswith("h") else 3  # Where the type of the lock is.
    values = [0] * 5
    # Asks whether a read lock could be set: only another process's write lock prevents it.
    values[index] = fcntl.F_RDLCK
    try:
        answer = fcntl.fcntl(file, fcntl.F_GETLK, struct.pack(form, *values))
    except OSError:  # The file system has no locks.
        return False
    return bool(struct.unpack(form, answer)[index] == fcntl.F_WRLCK)


def _lives(holder: Holder) -> bool:
    if os.name == "nt":  # On Windows, os.kill ends a process whatever the signal.
        return True
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # It belongs to another user, so it exists.
        pass
    state, begun = _process(holder.pid)
    return state not in _ZOMBIE and (not begun or not holder.begun or begun == holder.begun)


def _process(pid: int) -> tuple[str, str]:
    """Return the state of a process and when it started, if the system has /proc."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        # Field 22 counts from the boot, so the boot is named, too.
        return fields[0], f"{boot}/{fields[19]}"
    except (OSError, IndexError):
        return "", ""
