"""Unpack the sources of a run, which anybody may have made: no link, no path to elsewhere."""

from __future__ import annotations

import os
import shutil
import stat
import zipfile
from pathlib import Path, PurePosixPath

from hookloop.errors import HookloopError
from hookloop.runs.files import reject_link
from hookloop.runs.reading import opened_to_read

MOST_FILES = 20_000
MOST_BYTES = 200_000_000
"""The most that is unpacked: sources are small, and an archive may hold far more than its size."""


def unpack(archive: Path, folder: Path) -> int:
    """Unpack an archive into a new directory; return the number of files.

    Nothing is left of an archive that is rejected.

    Raises:
        HookloopError: If the archive cannot be read, is too large, or has an entry that is a link
            or leads out of the directory.
    """
    reject_link(archive)
    try:
        with opened_to_read(archive) as file, zipfile.ZipFile(file) as opened:
            entries = [entry for entry in opened.infolist() if not entry.is_dir()]
            _check(archive, opened.infolist())
            folder.mkdir(parents=True)
            try:
                _write(opened, entries, folder)
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise
    except FileExistsError as error:
        raise HookloopError(f"'{folder}' is there already: nothing is unpacked over it.") from error
    # NotImplementedError: a compression that Python does not know; RuntimeError: a password.
    except (zipfile.BadZipFile, OSError, RuntimeError, EOFError, ValueError) as error:
        raise HookloopError(f"'{archive}' cannot be unpacked: {error}") from error
    return len(entries)


def _check(archive: Path, entries: list[zipfile.ZipInfo]) -> None:
    if len(entries) > MOST_FILES or sum(entry.file_size for entry in entries) > MOST_BYTES:
        raise HookloopError(
            f"'{archive}' holds more than {MOST_FILES} files or {MOST_BYTES // 10**6} MB: nothing "
            "is unpacked."
        )
    for entry in entries:
        path, kind = PurePosixPath(entry.filename), stat.S_IFMT(entry.external_attr >> 16)
        # A backslash or a colon is a separator or a drive on Windows.
        is_plain = not set("\\:\0") & set(entry.filename) and ".." not in path.parts
        if not is_plain or path.is_absolute() or kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise HookloopError(
                f"'{archive}' has the entry '{entry.filename}', which is a link or leads out of "
                "its directory: nothing is unpacked."
            )


def _write(opened: zipfile.ZipFile, entries: list[zipfile.ZipInfo], folder: Path) -> None:
    left = MOST_BYTES
    for entry in entries:
        target = folder / entry.filename
        target.parent.mkdir(parents=True, exist_ok=True)
        # O_EXCL: two entries of one name would be two answers to what was trained.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with opened.open(entry) as source, os.fdopen(os.open(target, flags, 0o666), "wb") as file:
            while block := source.read(1 << 20):  # What the header says may be a lie.
                left -= len(block)
                if left < 0:
                    raise ValueError("it holds more than it says")
                file.write(block)
