"""`SaveFiles`: copy files that belong to a run into its directory."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hookloop.engine.hook import Hook
from hookloop.errors import HookError, nearest
from hookloop.runs.files import drafted, make_folder

if TYPE_CHECKING:
    from hookloop.engine.run import Run


class SaveFiles(Hook):
    """Copy files and directories into the run directory, before the training begins.

    Args:
        files: Paths or patterns (``"configs/*.yaml"``), relative to the working directory.
        to: Directory for the copies, inside the run directory.

    Example:
        >>> SaveFiles(["no_such_file.txt"])
        Traceback (most recent call last):
        hookloop.errors.HookError: SaveFiles: there is no 'no_such_file.txt'.
    """

    ranks = "first"

    def __init__(self, files: Sequence[str | Path], to: str = "files") -> None:
        if isinstance(files, str):
            raise HookError(f"SaveFiles: files is a list, write files=['{files}'].")
        self.paths = [path for file in files for path in _find(Path(file))]
        self.to = to

    def before_run(self, run: Run) -> None:
        sources: dict[Path, Path] = {}
        for path in self.paths:
            # A file below the working directory keeps its relative path, so that equal names do
            # not collide. Any other has its name alone, or its whole path if the name is taken.
            whole = path.resolve()
            is_inside = whole.is_relative_to(Path.cwd())
            relative = whole.relative_to(Path.cwd()) if is_inside else Path(whole.name)
            if sources.setdefault(relative, whole) != whole:
                relative = whole.relative_to(whole.anchor)
            target = run.dir / self.to / relative
            make_folder(target.parent, run.dir)
            if path.is_dir():
                _copy_folder(path, target, run.dir)
            else:
                _copy(path, target)


def _copy_folder(path: Path, target: Path, home: Path) -> None:
    # copytree calls `ignore` before it makes each directory. make_folder, unlike copytree, rejects
    # a symbolic link in its way.
    def prepare(folder: str, names: list[str]) -> list[str]:
        make_folder(target / Path(folder).relative_to(path), home)
        return []

    shutil.copytree(path, target, dirs_exist_ok=True, copy_function=_copy, ignore=prepare)


def _copy(path: str | Path, target: str | Path) -> None:
    with drafted(Path(target)) as draft:
        shutil.copy2(path, draft)


def _find(path: Path) -> list[Path]:
    if any(sign in str(path) for sign in "*?["):
        # Path.glob takes relative patterns only.
        root = Path(path.anchor) if path.is_absolute() else Path()
        pattern = str(path.relative_to(path.anchor)) if path.is_absolute() else str(path)
        found = sorted(root.glob(pattern))
        if not found:
            raise HookError(f"SaveFiles: nothing matches '{path}'.")
        return found
    if not path.exists():
        beside = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
        raise HookError(f"SaveFiles: there is no '{path}'.{nearest(path.name, beside)}")
    return [path]
