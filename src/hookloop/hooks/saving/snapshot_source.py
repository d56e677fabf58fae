"""`SnapshotSource`: keep the code that a run was made with."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

from hookloop.engine.hook import Hook
from hookloop.errors import HookError
from hookloop.runs.files import drafted, write_text
from hookloop.runs.git import git
from hookloop.secret import redact, redact_bytes

if TYPE_CHECKING:
    from hookloop.engine.run import Run

PATTERNS = ("*.py", "*.pyi", "*.yaml", "*.yml", "*.toml", "*.json", "*.sh", "*.cu", "*.cpp", "*.md")
LEFT_OUT = ("__pycache__", "node_modules", "build", "dist", "runs", "wandb", "mlruns", "venv")
LARGEST = 1_000_000  # Size of a file in bytes; larger files are data, not code.


class SnapshotSource(Hook):
    """Keep the source code of a run in its directory: ``source.zip``, and the state of git.

    ``git.txt`` has the commit and the state of the working tree, ``git.diff`` the changes since the
    commit. Hidden directories, virtual environments and large files are left out, and secrets of
    the config are replaced. A resumed run also keeps the code that it continues with, under another
    name.

    Args:
        root: The directory with the code.
        patterns: Which files to keep.

    Example:
        >>> SnapshotSource(patterns=["*.py"]).patterns
        ('*.py',)
    """

    ranks = "first"
    on_error = "disable"  # A training does not fail because its code cannot be copied.

    def __init__(self, root: str | Path = ".", patterns: str | Sequence[str] = PATTERNS) -> None:
        self.root = Path(root)
        self.patterns = (patterns,) if isinstance(patterns, str) else tuple(patterns)
        if not self.root.is_dir():
            raise HookError(f"SnapshotSource: there is no directory '{root}'.")

    def before_train(self, run: Run) -> None:
        # A resumed run may use other code, and must not replace that of its first part.
        after = f"_iter_{run.progress.iter}" if run.progress.iter else ""
        with (
            drafted(run.dir / f"source{after}.zip") as draft,
            zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive,
        ):
            for path in self._files(run.dir.resolve()):
                entry = zipfile.ZipInfo.from_file(path, path.relative_to(self.root))
                archive.writestr(entry, redact_bytes(path.read_bytes()), zipfile.ZIP_DEFLATED)
        # Outside of a repository git fails, and there is no commit to write down.
        if commit := git(self.root, "log", "-1", "--format=%H %cI %s"):
            status = git(self.root, "status", "--short")
            write_text(run.dir / f"git{after}.txt", f"{commit}{status}")
            diff = git(self.root, "diff", "HEAD")
            write_text(run.dir / f"git{after}.diff", redact(diff))

    def _files(self, run_dir: Path) -> Iterator[Path]:
        for here, folders, names in os.walk(self.root):
            folder = Path(here)
            # Changed in place: os.walk then does not descend into the removed ones.
            folders[:] = sorted(
                name
                for name in folders
                if not name.startswith(".")
                and name not in LEFT_OUT
                and not (folder / name / "pyvenv.cfg").exists()
                and (folder / name).resolve() != run_dir
            )
            for name in sorted(names):
                path = folder / name
                is_chosen = any(fnmatch(name, pattern) for pattern in self.patterns)
                if is_chosen and path.is_file() and path.stat().st_size <= LARGEST:
                    yield path
