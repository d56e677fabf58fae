"""What replaces MMEngine's saving and loading of checkpoints.

Files are read without running code in them, and written completely or not at all. A checkpoint of
our engine continues exactly; one of MMEngine itself at the start of its epoch.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from hookloop import CheckpointStore
from hookloop.dialects import drafted
from hookloop.errors import CheckpointError
from hookloop.runs import LAST_CHECKPOINT
from hookloop_mmengine.graft.plain import (
    plain_hub,
    to_plain,
    with_histories,
    without_functions,
)
from hookloop_mmengine.graft.saving import meta_of
from hookloop_mmengine.runner.checkpoint import read_checkpoint

if TYPE_CHECKING:
    from hookloop_mmengine.graft.training import Training

_log = logging.getLogger("hookloop")

Loaded = dict[str, object]
_PARTS = {
    "save_optimizer": ("optimizers", "optimizer"),
    "save_param_scheduler": ("schedules", "param_schedulers"),
}


# --- saving -------------------------------------------------------------------------------------


def save_checkpoint(
    original: Callable[..., None],
    runner: Any,  # noqa: ANN401 - mmengine's Runner, or one of a project
    out_dir: str,
    filename: str,
    file_client_args: object = None,
    **options: Any,  # noqa: ANN401 - as in MMEngine
) -> None:
    """Save as ``Runner.save_checkpoint`` does, through our engine if it trains.

    Args:
        original: MMEngine's own function.
        runner: The runner.
        out_dir: The directory.
        filename: The name of the file.
        file_client_args: MMEngine's older way to name a store.
        options: Its other arguments.
    """
    training: Training | None = getattr(runner, "hookloop_training", None)
    if training is None or not _is_local(out_dir, file_client_args, options):
        if training is not None:
            training.report_once(
                f"Checkpoints in '{out_dir}' are written by MMEngine itself: a resume from one "
                "begins its epoch again."
            )
        original(runner, out_dir, filename, file_client_args, **options)
        return
    meta = options.get("meta")
    if meta is not None and not isinstance(meta, dict):
        raise TypeError(f"meta should be a dict or None, but got {type(meta)}")
    by_epoch = options.get("by_epoch", True)
    counters = {"epoch": runner.epoch + by_epoch, "iter": runner.iter + (not by_epoch)}
    leave_out = tuple(
        part for option, parts in _PARTS.items() if not options.get(option, True) for part in parts
    )
    if not training.asks_everywhere:
        # Its author expects the file when the call returns. The exact one replaces it.
        original(runner, out_dir, filename, file_client_args, **options)
    path = os.path.abspath(os.path.join(out_dir, filename))
    training.files.request(
        training.run, path, meta_of(runner, {**counters, **(meta or {})}), leave_out
    )


def _is_local(out_dir: str, client: object, options: Mapping[str, object]) -> bool:
    from mmengine.fileio import LocalBackend, get_file_backend

    if client is not None or options.get("backend_args") is not None:
        return False
    return isinstance(get_file_backend(out_dir), LocalBackend)


def write_file(checkpoint: Mapping[str, object], filename: str, **options: object) -> None:
    """Write a file on the disk completely or not at all, in plain containers."""
    Path(filename).parent.mkdir(parents=True, exist_ok=True)
    plain = {key: _plain_part(key, value) for key, value in checkpoint.items()}
    with drafted(Path(filename)) as draft:
        torch.save(plain, draft)


def _plain_part(key: str, value: object) -> object:
    if key == "message_hub" and isinstance(value, Mapping) and "log_scalars" in value:
        return plain_hub(value)
    return to_plain(value)


# --- loading ------------------------------------------------------------------------------------


def load_file(filename: str, map_location: object = None) -> Loaded:
    """Read a file on the disk without running code in it.

    Files of MMEngine hold histories, which are made again from their numbers, and functions, which
    are left out.
    """
    path = os.path.expanduser(filename)
    if not os.path.isfile(path):
        raise FileNotFoundError(f"{filename} can not be found.")
    read = read_checkpoint(path, map_location, _arrays())
    return without_functions(with_histories(read))


def _arrays() -> dict[str, object]:
    """Return the names by which files hold arrays of NumPy; making one runs no code."""
    # The module was renamed in NumPy 2; files of both are read by both.
    multiarray: Any = getattr(np, "_core" if hasattr(np, "_core") else "core").multiarray
    functions = {
        f"numpy.{module}.multiarray.{name}": getattr(multiarray, name)
        for module in ("_core", "core")
        for name in ("_reconstruct", "scalar")
    }
    numbers = [type(np.dtype(code)) for code in "?bhilqBHILQefdFDU"]
    kinds = {f"numpy.dtypes.{kind.__name__}": kind for kind in numbers}
    return {**functions, **kinds, "numpy.ndarray": np.ndarray, "numpy.dtype": np.dtype}


def resume(
    original: Callable[..., None],
    runner: Any,  # noqa: ANN401 - mmengine's Runner, or one of a project
    filename: str,
    resume_optimizer: bool = True,
    resume_param_scheduler: bool = True,
    map_location: object = "default",
) -> None:
    """Resume as ``Runner.resume`` does; our engine then continues exactly where it was saved."""
    found = _find(runner, filename)
    if found is None:
        return
    filename, checkpoint = found
    original(runner, filename, resume_optimizer, resume_param_scheduler, map_location)
    if "progress" in checkpoint and resume_optimizer and resume_param_scheduler:
        runner.hookloop_resume = filename


def _find(runner: Any, filename: str) -> tuple[str, Mapping[str, object]] | None:  # noqa: ANN401
    """Return a checkpoint; in place of the damaged last one of a run, the newest good one."""
    if "://" in filename:  # MMEngine fetches it.
        return filename, {}
    home = Path(runner.work_dir)
    pointer = home / LAST_CHECKPOINT
    is_last = pointer.is_file() and pointer.read_text().strip() == filename
    if is_last and not os.path.dirname(filename):  # As the alias writes it.
        filename = str(home / filename)
    try:
        return filename, read_checkpoint(filename)
    except CheckpointError as error:
        if not is_last:
            raise
        problem = str(error)
    newest = CheckpointStore(str(home)).newest()
    if newest is None:
        _log.warning("%s There is no other checkpoint: the run starts from its beginning.", problem)
        return None
    _log.warning("%s Resuming from '%s/%s' instead.", problem, home, newest[0])
    return f"{home}/{newest[0]}", newest[1]
