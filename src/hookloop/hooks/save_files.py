"""`SaveFiles`: files that belong to a run, kept with it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hookloop.core.hook import Hook
from hookloop.errors import HookError, nearest
from hookloop.runs.files import drafted, make_folder

if TYPE_CHECKING:
    from hookloop.core.run import Run


class SaveFiles(Hook):
    """Copy files and directories into the run directory, before the training begins.

    Args:
        files: Paths or patterns (``"configs/*.yaml"``), relative to the working directory.
        to: The directory of the copies, in the run directory.

    Example:
        >>> SaveFiles(["no_such_file.txt"])
        Traceback (most recent call last):
        hookloop.errors.HookError: SaveFiles: there is no 'no_such_file.txt'.
    """

    def __init__(self, files: Sequence[str | Path], to: str = "files") -> None:
        if isinstance(files, str):
            raise HookError(f"SaveFiles: files is a list, write files=['{files}'].")
        self.paths = [path for file in files for path in _find(Path(file))]
        self.to = to

    def before_run(self, run: Run) -> None:
        if not run.world.is_main:
            return
        places: dict[Path, Path] = {}
        for path in self.paths:
            # Below the working directory a file keeps its place, so that equal names do not meet;
            # one of elsewhere has its name alone, unless that is taken.
            whole = path.resolve()
            inside = whole.is_relative_to(Path.cwd())
            place = whole.relative_to(Path.cwd()) if inside else Path(whole.name)
            if places.setdefault(place, whole) != whole:
                place = whole.relative_to(whole.anchor)
            target = run.dir / self.to / place
            make_folder(target.parent, run.dir)
            if path.is_dir():
                _copy_folder(path, target, run.dir)
            else:
                _copy(path, target)


def _copy_folder(path: Path, target: Path, home: Path) -> None:
    def look(folder: str, names: list[str]) -> list[str]:
        make_folder(target / Path(folder).relative_to(path), home)
        return []

    shutil.copytree(path, target, dirs_exist_ok=True, copy_function=_copy, ignore=look)


def _copy(path: str | Path, target: str | Path) -> None:
    with drafted(Path(target)) as draft:
        shutil.copy2(path, draft)


def _find(path: Path) -> list[Path]:
    if any(sign in str(path) for sign in "*?["):
        root = Path(path.anchor) if path.is_absolute() else Path()
        pattern = str(path.relative_to(path.anchor)) if path.is_absolute() else str(path)
        found = sorted(root.glob(pattern))
        if not found:
            raise HookError(f"SaveFiles: nothing fits '{path}'.")
        return found
    if not path.exists():
        beside = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
        raise HookError(f"SaveFiles: there is no '{path}'.{nearest(path.name, beside)}")
    return [path]
