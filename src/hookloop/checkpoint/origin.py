"""Where a run begins: a new directory, a run to continue, weights to start from."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from hookloop.checkpoint.store import CheckpointStore
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
        load_from: str | Path | None = None,
    ) -> None:
        self.weights = Path(load_from) if load_from is not None else None
        self.checkpoint: Path | None = None
        self._dir = Path(run_dir) if run_dir is not None else None
        self._continues = False
        if resume is True and self._dir is None:
            raise CheckpointError(
                "resume=True needs run_dir=, the directory of the run to continue."
            )
        if resume is True:
            self._find(self._dir or Path())
        elif resume:
            self._find(Path(resume))
        if self.weights is not None and not self.weights.is_file():
            raise CheckpointError(f"load_from: there is no checkpoint '{self.weights}'.")

    def _find(self, path: Path) -> None:
        """Locate the checkpoint to continue from; the run goes on in its directory."""
        if path.is_file():
            self.checkpoint, home = path, path.parent
        else:
            self.checkpoint, home = CheckpointStore(path).newest(), path
            if self.checkpoint is None:
                _log.warning("'%s' has no checkpoint yet: the run starts from the beginning.", path)
        self._continues = self._dir is None or self._dir == home
        self._dir = self._dir or home

    @property
    def is_given(self) -> bool:
        """Whether the user chose the directory."""
        return self._dir is not None

    def open(self, config: Mapping[str, object]) -> Path:
        """Claim the directory, once, and leave the config there; return its path."""
        if self._continues and self._dir is not None:
            return RunDir.open(self._dir).path
        directory = RunDir.create(self._dir)
        if config:
            directory.write_config(config)
        self._dir, self._continues = directory.path, True
        return directory.path

    def forget(self) -> None:
        """Load nothing any more: what was loaded is trained on from here."""
        self.checkpoint = self.weights = None
