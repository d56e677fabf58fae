"""``imix.utils.checkpoint``: files in iMIX's own form, for hooks that write them.

A run is resumed from hookloop's checkpoints. These files hold what iMIX's do: weights, the states
of optimizer and scheduler, and a few numbers.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

import torch
from torch.nn.parallel import DataParallel, DistributedDataParallel

from hookloop.dialects import drafted

_log = logging.getLogger("imix")

FINAL = "model_final.pth"


class HasState(Protocol):
    """An optimizer or a scheduler."""

    def state_dict(self) -> dict[str, Any]:
        """Return its state."""

    def load_state_dict(self, state_dict: dict[str, Any], /) -> object:
        """Restore it."""


class Checkpointer:
    """Write and read files with the state of a model and of other parts.

    Args:
        model: The model.
        save_dir: Directory of the files; empty for none.
        is_save_disk: Whether to write at all.
        is_record_ck: Whether to remember the files, so that old ones can be removed.
        other_train_info: Other parts by the names of their entries, such as ``optimizer``.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        save_dir: str = "",
        *,
        is_save_disk: bool = True,
        is_record_ck: bool = True,
        **other_train_info: HasState,
    ) -> None:
        wrapped = isinstance(model, DataParallel | DistributedDataParallel)
        self.model = cast("torch.nn.Module", model.module) if wrapped else model
        self.save_dir = save_dir
        self.is_save_disk = is_save_disk
        self.is_record_ck = is_record_ck
        self.other_train_info = dict(other_train_info)
        self.checkpoint_files: list[str] = []

    def save(self, checkpoint_name: str, **kwargs: object) -> None:
        """Write a file; the keyword arguments become entries of it."""
        if not self.is_save_disk or not self.save_dir:
            return
        others = {name: part.state_dict() for name, part in self.other_train_info.items()}
        self._write(
            f"{checkpoint_name}.pth", {"model": self.model.state_dict(), **kwargs, **others}
        )

    def _write(self, name: str, data: dict[str, object]) -> None:
        path = Path(self.save_dir) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with drafted(path) as draft:
            torch.save(data, draft)
        _log.info("Saved %s.", path)
        if self.is_record_ck:
            self.checkpoint_files.append(name)

    def remove_first_from_checkpoint(self) -> None:
        """Remove the oldest file, unless it is the final one."""
        if self.checkpoint_files:
            name = self.checkpoint_files.pop(0)
            if not name.endswith(FINAL):
                (Path(self.save_dir) / name).unlink(missing_ok=True)

    def load_checkpoint(
        self, path: str, specify_load_keys: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """Load the weights, and the parts that are named, by default all; return the other entries.

        Weights of another shape are left out and named in a warning.
        """
        if not path or not Path(path).is_file():
            raise ValueError(f"There is no checkpoint '{path}'.")
        data: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        self._load_model(data.pop("model") if "model" in data else data)
        names = self.other_train_info if specify_load_keys is None else specify_load_keys
        for name in names:
            if name in data:
                self.other_train_info[name].load_state_dict(data.pop(name))
        return data

    def _load_model(self, weights: Mapping[str, torch.Tensor]) -> None:
        own = self.model.state_dict()
        found = {name.removeprefix("module."): one for name, one in weights.items()}
        wrong = [name for name in found if name in own and own[name].shape != found[name].shape]
        kept = {name: one for name, one in found.items() if name not in wrong}
        result = self.model.load_state_dict(kept, strict=False)
        for what, names in (
            ("have another shape in the file", wrong),
            ("are not in the file", [name for name in result.missing_keys if name not in wrong]),
            ("of the file are not in the model", result.unexpected_keys),
        ):
            if names:
                _log.warning("Weights that %s: %s.", what, ", ".join(names))

    def resume_or_load(self, path: str, resume: bool = True) -> dict[str, Any]:
        """Load everything to resume, otherwise the weights alone."""
        return self.load_checkpoint(path, None if resume else ())


class PeriodicCheckpointer:
    """Write files by epochs and iterations, and keep the newest.

    Args:
        checkpointer: Writes them.
        iter_period: Iterations between two files.
        epoch_period: Epochs between two files.
        max_iter: Iterations of the training, after which a final file is written.
        max_epoch: Epochs of the training, the same.
        max_num_checkpoints: Number of files to keep, not counting the final one.
    """

    def __init__(
        self,
        checkpointer: Checkpointer,
        *,
        iter_period: int | None = None,
        epoch_period: int = 1,
        max_iter: int | None = None,
        max_epoch: int | None = None,
        max_num_checkpoints: int | None = None,
    ) -> None:
        assert isinstance(checkpointer, Checkpointer), f"{checkpointer!r} is not a Checkpointer"
        for name, limit in (("max_iter", max_iter), ("max_epoch", max_epoch)):
            assert limit is None or limit > 0, f"{name} is not above 0: {limit}"
        self.checkpointer = checkpointer
        self.iter_period = iter_period
        self.epoch_period = epoch_period
        self.max_iter = max_iter
        self.max_epoch = max_epoch
        self.max_num_checkpoints = max_num_checkpoints
        if max_num_checkpoints is not None:
            checkpointer.is_record_ck = True

    def record_iter_checkpoint(self, iteration: int, prefix: str = "", **kwargs: Any) -> str | None:  # noqa: ANN401 - entries
        """Write what is due after an iteration; return the name of a periodic file."""
        state = {"iteration": iteration, **kwargs}
        name = None
        # In iMIX, an iteration between two periods fails.
        if self.iter_period and (iteration + 1) % self.iter_period == 0:
            name = self._record(f"{prefix}_iter{iteration:07d}_model", state)
        if self.max_iter is not None and iteration + 1 >= self.max_iter:
            self.save(f"{prefix}_model_final", **state)
        return name

    def record_epoch_checkpoint(self, epoch: int, prefix: str = "", **kwargs: Any) -> str | None:  # noqa: ANN401 - entries
        """Write what is due after an epoch, or within it; return the name of a periodic file."""
        is_epoch = bool(kwargs.pop("is_epoch", True))
        state = {"epoch": epoch, **kwargs}
        name = None
        if (epoch + 1) % self.epoch_period == 0:
            within = "" if is_epoch else f"_iter{cast('int', kwargs.get('epoch_iter', 0)) + 1}"
            name = self._record(f"{prefix}_epoch{epoch}{within}_model", state)
        if is_epoch and self.max_epoch is not None and epoch + 1 >= self.max_epoch:
            self.save(f"{prefix}_model_final", **state)
        return name

    def _record(self, name: str, state: Mapping[str, object]) -> str:
        self.save(name, **state)
        files = self.checkpointer.checkpoint_files
        if self.max_num_checkpoints is not None and len(files) > self.max_num_checkpoints:
            self.checkpointer.remove_first_from_checkpoint()
        return f"{name}.pth"

    def save(self, file_name: str, **kwargs: object) -> None:
        """Write a file."""
        self.checkpointer.save(file_name, **kwargs)
