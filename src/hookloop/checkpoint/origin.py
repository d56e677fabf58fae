"""Where a run begins: a new directory, a run to continue, weights to start from."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from hookloop.checkpoint.store import LAST, CheckpointStore, load
from hookloop.checkpoint.weights import Pretrained
from hookloop.errors import CheckpointError
from hookloop.runs.layout import RunDir

_log = logging.getLogger("hookloop")


class Origin:
    """Decides, from what the user gave, which directory is used and what is loaded.

    Args:
        run_dir: The directory; None for a new one under ``runs/``.
        resume: True for the run in ``run_dir``; a run directory or a checkpoint file to continue.
        load_from: A checkpoint of which only the weights are taken.
    """

    def __init__(
        self,
        run_dir: str | Path | None = None,
        resume: bool | str | Path | None = None,
        load_from: Pretrained | str | Path | None = None,
    ) -> None:
        if isinstance(load_from, str | Path):
            load_from = Pretrained(load_from)
        self.weights = load_from
        self._dir = Path(run_dir) if run_dir is not None else None
        self._resume: Path | None = None
        self._continues = False
        if resume is True:
            if self._dir is None:
                raise CheckpointError("resume=True needs run_dir=, the run to continue.")
            self._resume = self._dir
        elif resume:
            self._resume = Path(resume)
            if not self._resume.exists():
                raise CheckpointError(f"resume: there is no '{resume}'.")
        if self._resume is not None:
            home = self._resume.parent if self._resume.is_file() else self._resume
            self._dir = self._dir or home
            self._continues = self._dir == home
        wanted = str(self.weights.path) if self.weights is not None else ""
        if wanted and "://" not in wanted and not Path(wanted).is_file():
            raise CheckpointError(f"load_from: there is no checkpoint '{wanted}'.")

    @property
    def is_given(self) -> bool:
        """Whether the user chose the directory."""
        return self._dir is not None

    def open(self, config: Mapping[str, object]) -> Path:
        """Claim the directory, once, and leave the config there; return its path."""
        if self._continues and self._dir is not None:
            path = RunDir.open(self._dir).path
            CheckpointStore(path).clean()
            return path
        directory = RunDir.create(self._dir)
        if config:
            directory.write_config(config)
        self._dir, self._continues = directory.path, True
        return directory.path

    def take_checkpoint(self) -> tuple[str, dict[str, object]] | None:
        """Load the checkpoint to continue from, once; later calls go on from what was trained."""
        path, self._resume = self._resume, None
        if path is None:
            return None
        if path.is_file():
            return str(path), load(path)
        found = _store_of(path).newest()
        if found is None:
            _log.warning("'%s' has no checkpoint yet: the run starts from the beginning.", path)
            return None
        name, checkpoint = found
        return str(path / name), checkpoint


def _store_of(run_dir: Path) -> CheckpointStore:
    """Find where a run keeps its checkpoints: beside its records, unless it was told otherwise."""
    last = run_dir / LAST
    elsewhere = (
        last.read_text(encoding="utf-8").strip().rpartition("/")[0] if last.is_file() else ""
    )
    return CheckpointStore(elsewhere or run_dir)
