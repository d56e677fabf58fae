"""Where checkpoints are kept: written whole or not at all, read without running any code."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from hookloop.errors import CheckpointError
from hookloop.runs.layout import RunDir, write_text


@dataclass(frozen=True)
class Saved:
    """A checkpoint that is safely on disk."""

    path: Path
    iter: int
    epoch: int

    @property
    def name(self) -> str:
        """The file's name."""
        return self.path.name


class CheckpointStore:
    """The checkpoints of one run directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def save(self, checkpoint: Mapping[str, object], name: str, *, iter: int, epoch: int) -> Saved:
        """Write a checkpoint under a name; afterwards the file is whole and durable."""
        self.directory.mkdir(parents=True, exist_ok=True)
        final = self.directory / name
        staged = final.with_name(f".{name}.{os.getpid()}.tmp")
        try:
            with staged.open("wb") as file:
                torch.save(dict(checkpoint), file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(staged, final)
        except BaseException:
            staged.unlink(missing_ok=True)
            raise
        _sync_directory(self.directory)
        # Only now may it be named as the newest: a crash before this line leaves the older one.
        write_text(RunDir(self.directory).last_checkpoint_file, name + "\n")
        return Saved(final, iter, epoch)

    def newest(self) -> Path | None:
        """Return the checkpoint to resume from, or None when there is none."""
        return RunDir(self.directory).last_checkpoint

    def prune(self, names: list[str]) -> None:
        """Delete checkpoints that are not wanted any more; one that is gone already is no fault."""
        for name in names:
            (self.directory / name).unlink(missing_ok=True)


def load(path: Path) -> dict[str, object]:
    """Read a checkpoint; only tensors and plain containers are accepted."""
    try:
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise CheckpointError(f"There is no checkpoint '{path}'.") from error
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        raise CheckpointError(f"'{path}' cannot be loaded: {error}") from error
    if not isinstance(checkpoint, dict):
        raise CheckpointError(f"'{path}' holds a {type(checkpoint).__name__}, not a checkpoint.")
    return checkpoint


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
