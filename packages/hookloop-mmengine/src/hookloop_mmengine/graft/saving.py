"""Saving: MMEngine's hooks decide when and under which name, our engine writes.

A checkpoint is copied at the end of the sweep in which it was asked for, written in the background,
and under its name only once it is durable. Old files are deleted after that and not before.
"""

from __future__ import annotations

import copy
import logging
import os
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from hookloop import Hook, Priority, Save
from hookloop.dialects import is_checkpoint_file
from hookloop_mmengine.graft.plain import plain_hub, to_plain

_log = logging.getLogger("hookloop")

_PARTS = ("state_dict", "meta")
"""What is in every checkpoint of MMEngine."""

if TYPE_CHECKING:
    from hookloop import Run, Saved
    from hookloop_mmengine.graft.training import Training


class SaveFiles(Hook):
    """Request the files that MMEngine's hooks ask for, and delete those that they replace.

    The tensors are shared with our own keys, so a file does not grow.

    Args:
        training: The training, with the runner.
    """

    name = "mmengine_files"
    priority = Priority.LOWEST
    takes_part_in_training = True

    def __init__(self, training: Training) -> None:
        self._training = training
        self._meta: dict[str, object] = {}
        self._counters: tuple[int, int] | None = None
        self._coming: set[str] = set()
        self._saving: Any = None
        # Each with the file that replaces it, once that has been requested.
        self._removals: list[tuple[str, str | None]] = []

    def request(
        self, run: Run, path: str, meta: dict[str, object], leave_out: tuple[str, ...]
    ) -> None:
        """Request a checkpoint of the state at the end of this sweep.

        Args:
            run: The run.
            path: The file.
            meta: What MMEngine puts into ``meta``.
            leave_out: The parts that the file does not hold.
        """
        directory, name = os.path.split(os.path.abspath(path))
        loop = self._training.loop
        self._meta, self._counters = meta, (loop._epoch, loop._iter)
        self._removals = [(old, after or path) for old, after in self._removals if old != path]
        self._coming.add(path)
        location = None if Path(directory) == Path(run.dir).absolute() else directory
        kind: Literal["best", "periodic"] = "best" if leave_out else "periodic"
        # MMEngine names a file without the optimizer, too.
        last = getattr(self._saving, "last_ckpt", None)
        marks_last = True if last is not None and os.path.abspath(last) == path else None
        save = Save(name, location, kind, self.name, leave_out=leave_out, marks_last=marks_last)
        run.save(save, everywhere=self._training.asks_everywhere)

    def remove_later(self, path: str) -> None:
        """Delete a file when the one that replaces it, the next that is saved, is durable."""
        self._removals.append((os.path.abspath(path), None))

    def is_coming(self, path: str) -> bool:
        """Return whether a file was requested and is not there yet."""
        return os.path.abspath(path) in self._coming

    @contextmanager
    def saving_for(self, hook: Any) -> Iterator[None]:  # noqa: ANN401 - of mmengine
        """Let the file that a CheckpointHook names as its last one be named so when it is durable.

        A hook that fails before that, or a kill, leaves the name of the file before.
        """
        before, self._saving = self._saving, hook
        try:
            yield
        finally:
            self._saving = before

    # --- at the points

    def after_load_checkpoint(self, run: Run, checkpoint: MutableMapping[str, object]) -> None:
        # Version 0.2 kept what modules have as attributes in a hook of its own.
        hooks = cast("dict[str, dict[str, dict[str, object]]]", checkpoint.get("hooks") or {})
        if modules := hooks.pop("mmengine_modules", None):
            checkpoint["undeclared"] = {
                "values": {
                    ".".join(filter(None, ("model", path, name))): value
                    for path, attributes in modules.items()
                    for name, value in attributes.items()
                }
            }

    def before_save_checkpoint(self, run: Run, checkpoint: MutableMapping[str, object]) -> None:
        training, runner = self._training, self._training.runner
        weights = cast("OrderedDict[str, object]", checkpoint["model"])
        view: dict[str, object] = {
            "meta": dict(self._meta or training.meta()),
            "state_dict": copy.copy(weights),  # MMEngine's EMAHook exchanges its entries.
            "message_hub": plain_hub(runner.message_hub.state_dict()),
            "optimizer": runner.optim_wrapper.state_dict(),
        }
        if (schedulers := training.scheduler_states()) is not None:
            view["param_schedulers"] = schedulers
        with self._counters_of_sweep():
            runner.call_hook("before_save_checkpoint", checkpoint=view)
        checkpoint.update({key: to_plain(value) for key, value in view.items()})

    @contextmanager
    def _counters_of_sweep(self) -> Iterator[None]:
        """Show the counters as they were when the checkpoint was asked for."""
        loop = self._training.loop
        now = loop._epoch, loop._iter
        loop._epoch, loop._iter = self._counters or now
        try:
            yield
        finally:
            loop._epoch, loop._iter = now
            self._meta, self._counters = {}, None

    def after_save_checkpoint(self, run: Run, saved: Saved) -> None:
        path = os.path.abspath(saved.path)
        self._coming.discard(path)
        if not run.world.is_main:
            return
        replaced = [old for old, after in self._removals if after == path]
        self._removals = [entry for entry in self._removals if entry[0] not in replaced]
        for old in replaced:
            _delete(old)

    def finish(self) -> None:
        """Delete what is left to delete, when nothing more will be saved."""
        for old, after in self._removals:
            if after is None or after not in self._coming:
                _delete(old)
        self._removals = []


def _delete(path: str) -> None:
    """Delete a checkpoint; the one that was resumed may name it, and be a stranger's."""
    if is_checkpoint_file(Path(path), _PARTS):
        Path(path).unlink(missing_ok=True)
    elif os.path.lexists(path):
        _log.warning("'%s' is not a checkpoint, so it is not deleted.", path)


def meta_of(runner: Any, meta: Mapping[str, object]) -> dict[str, object]:  # noqa: ANN401
    """Return the ``meta`` of a checkpoint as MMEngine fills it, with given entries."""
    import mmengine
    from mmengine.utils import get_git_hash

    filled = {
        **meta,
        "cfg": runner.cfg.pretty_text,
        "seed": runner.seed,
        "experiment_name": runner.experiment_name,
        "time": time.strftime("%Y%m%d_%H%M%S", time.localtime()),
        "mmengine_version": mmengine.__version__ + get_git_hash(),
    }
    if hasattr(runner.train_dataloader.dataset, "metainfo"):
        filled["dataset_meta"] = runner.train_dataloader.dataset.metainfo
    return filled


class LaterRemoval:
    """A file backend of MMEngine whose files are deleted when what replaces them is durable.

    Args:
        backend: The backend.
        files: What saves and deletes.
    """

    def __init__(self, backend: Any, files: SaveFiles) -> None:  # noqa: ANN401 - of mmengine
        self.backend = backend
        self._files = files

    def __getattr__(self, name: str) -> object:
        return getattr(self.backend, name)

    def isfile(self, path: str) -> bool:
        """Return whether a file exists or is about to."""
        return bool(self.backend.isfile(path)) or self._files.is_coming(str(path))

    def remove(self, path: str) -> None:
        """Delete a file later."""
        self._files.remove_later(str(path))
