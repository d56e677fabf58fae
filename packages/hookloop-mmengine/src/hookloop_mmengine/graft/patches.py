"""What the graft replaces in MMEngine, and how a loop that is not MMEngine's own runs through."""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Callable
from functools import partial, wraps
from typing import IO, Any

import mmengine
from mmengine.hooks import CheckpointHook, checkpoint_hook
from mmengine.runner import Runner, _flexible_runner, checkpoint, loops
from mmengine.runner.checkpoint import CheckpointLoader

from hookloop.dialects import Graft
from hookloop.runs import LAST_CHECKPOINT
from hookloop_mmengine.graft.checkpoints import (
    load_file,
    resume,
    save_checkpoint,
    write_file,
)
from hookloop_mmengine.graft.iterator import LateIterator
from hookloop_mmengine.graft.training import Training, optimizers_of
from hookloop_mmengine.graft.without_gpus import allow_processes

_log = logging.getLogger("hookloop")

KNOWN = "0.10."
"""The versions of MMEngine that the graft is compared with."""

_STRATEGIES = ("SingleDeviceStrategy", "DDPStrategy")
_LOST = (
    "It runs as it is: checkpoints are still written completely or not at all, but a resume begins "
    "an epoch again, and a signal ends the process at once."
)


def make_graft() -> Graft:
    """Put our engine under MMEngine's runners, until the graft is undone."""
    if not mmengine.__version__.startswith(KNOWN):
        _log.warning(
            "The graft is compared with MMEngine %sx, and this is %s.", KNOWN, mmengine.__version__
        )
    graft = Graft()
    for kind, is_iter_based in (
        (loops.EpochBasedTrainLoop, False),
        (loops.IterBasedTrainLoop, True),
    ):
        graft.replace(kind, "run", _replaced_run(kind, is_iter_based=is_iter_based))
    graft.replace(loops, "_InfiniteDataloaderIterator", LateIterator)
    for runner in (Runner, _flexible_runner.FlexibleRunner):
        graft.replace(runner, "save_checkpoint", _instead(runner.save_checkpoint, save_checkpoint))
        graft.replace(runner, "resume", _instead(runner.resume, resume))
        graft.replace(runner, "build_train_loop", _reporting(runner.build_train_loop))
    pointers: set[str] = set()
    for name in ("_save_checkpoint_with_step", "_save_best_checkpoint"):
        graft.replace(CheckpointHook, name, _everywhere(getattr(CheckpointHook, name), pointers))
    graft.replace(checkpoint_hook, "open", _open_but_pointers(pointers))
    # The loader keeps the functions themselves, by the beginning of the paths.
    load = _named_as(checkpoint.load_from_local, load_file)
    graft.replace(checkpoint, "load_from_local", load)
    schemes = CheckpointLoader._schemes
    graft.replace(CheckpointLoader, "_schemes", {**schemes, "": load})
    _replace_writing(graft)
    allow_processes(graft)
    return graft


def _replaced_run(kind: Any, *, is_iter_based: bool) -> Callable[[Any], object]:  # noqa: ANN401
    original = kind.run

    @wraps(original)
    def run(loop: Any) -> object:  # noqa: ANN401 - a loop of mmengine
        if _is_finished(loop) or why_not(loop) is not None:
            return original(loop)
        if (reason := _trains_nothing(loop.runner)) is not None:
            _log.warning("%s %s", reason, _LOST)
            return original(loop)
        return Training(loop, is_iter_based=is_iter_based).train()

    return run


def _is_finished(loop: Any) -> bool:  # noqa: ANN401 - a loop of mmengine
    """Return whether there is nothing to train: MMEngine only calls the hooks then."""
    return bool(loop.iter >= loop.max_iters or loop.stop_training)


def _trains_nothing(runner: Any) -> str | None:  # noqa: ANN401 - a runner of mmengine
    """Return which optimizer holds nothing of the model: MMEngine does not look at that."""
    trainable = {id(one) for one in runner.model.parameters() if one.requires_grad}
    for name, optimizer in optimizers_of(runner.optim_wrapper).items():
        held = {id(one) for group in optimizer.param_groups for one in group["params"]}
        if not held & trainable:
            return f"The optimizer '{name}' holds no trainable parameter of the model."
    return None


def why_not(loop: Any) -> str | None:  # noqa: ANN401 - a loop of mmengine
    """Return why a loop has to run as it is, or None if our engine drives it."""
    for kind in (loops.EpochBasedTrainLoop, loops.IterBasedTrainLoop):
        if isinstance(loop, kind):
            own = [
                name
                for name in ("run", "run_epoch", "run_iter")
                if getattr(type(loop), name, None) is not getattr(kind, name, None)
            ]
            if own:
                return f"{type(loop).__name__} has {', '.join(own)} of its own."
            strategy = type(getattr(loop.runner, "strategy", None)).__name__
            if strategy not in (*_STRATEGIES, "NoneType"):
                return f"The training has a {strategy}, which makes the update itself."
            return None
    return f"{type(loop).__name__} is a loop of the project's own."


def _reporting(build: Callable[..., Any]) -> Callable[..., Any]:
    """Report, when a train loop is built, that our engine does not drive it."""

    @wraps(build)
    def build_train_loop(runner: Any, loop: Any) -> Any:  # noqa: ANN401 - of mmengine
        is_new = isinstance(loop, dict)
        built = build(runner, loop)
        if is_new and (reason := why_not(built)) is not None:
            _log.warning("%s %s", reason, _LOST)
        return built

    return build_train_loop


def _named_as(original: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    """Keep the name: MMEngine logs by which backend it loads, and takes that from the function."""

    @wraps(original)
    def function(*args: object, **kwargs: object) -> Any:  # noqa: ANN401 - what ours returns
        return ours(*args, **kwargs)

    return function


def _instead(original: Callable[..., None], ours: Callable[..., None]) -> Callable[..., None]:
    # master_only keeps the other ranks out; ours has to be called by all of them.
    function = getattr(original, "__wrapped__", original)

    @wraps(function)
    def method(runner: Any, *args: object, **kwargs: object) -> None:  # noqa: ANN401
        ours(original, runner, *args, **kwargs)

    return method


def _everywhere(original: Callable[..., None], pointers: set[str]) -> Callable[..., None]:
    """Let all ranks request a checkpoint together: the hook acts alike on all of them.

    Meanwhile ``pointers`` holds the path of the run's ``last_checkpoint``.
    """

    @wraps(original)
    def method(hook: object, runner: Any, *args: object, **kwargs: object) -> None:  # noqa: ANN401
        training: Training | None = getattr(runner, "hookloop_training", None)
        if training is None:
            original(hook, runner, *args, **kwargs)
            return
        before, training.asks_everywhere = training.asks_everywhere, True
        pointers.add(os.path.join(runner.work_dir, LAST_CHECKPOINT))
        try:
            with training.files.saving_for(hook):
                original(hook, runner, *args, **kwargs)
        finally:
            training.asks_everywhere = before
            if not before:  # The one call saves the best file, and then the last again.
                pointers.clear()

    return method


def _open_but_pointers(pointers: set[str]) -> Callable[..., IO[Any]]:
    """Return an `open` that writes nothing to ``pointers``.

    CheckpointHook names its file there at once, in the thread that trains. Our engine does so when
    the file is durable, and nobody else may: a kill in between would leave a name without a file.
    """

    def open_(file: Any, *args: Any, **kwargs: Any) -> IO[Any]:  # noqa: ANN401 - as of Python
        return io.StringIO() if file in pointers else open(file, *args, **kwargs)

    return open_


def _replace_writing(graft: Graft) -> None:
    """Write files on the disk completely or not at all, wherever MMEngine saves."""
    import mmengine.runner as package
    from mmengine.runner import runner as module

    ours = partial(_write, checkpoint.save_checkpoint)
    for holder in (checkpoint, package, module):
        if hasattr(holder, "save_checkpoint"):
            graft.replace(holder, "save_checkpoint", ours)


def _write(
    original: Callable[..., None],
    checkpoint: Any,  # noqa: ANN401 - whatever is saved
    filename: str,
    file_client_args: object = None,
    backend_args: object = None,
) -> None:
    from mmengine.fileio import LocalBackend, get_file_backend

    is_local = file_client_args is None and backend_args is None and "://" not in str(filename)
    if is_local and isinstance(checkpoint, dict):
        is_local = isinstance(get_file_backend(filename), LocalBackend)
    if is_local and isinstance(checkpoint, dict):
        write_file(checkpoint, filename)
    else:
        original(checkpoint, filename, file_client_args, backend_args)
