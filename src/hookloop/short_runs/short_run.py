"""A training of a few iterations, in a directory that goes away, without what reaches out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal, cast

from hookloop.checkpoint.saving.snapshot import Snapshot
from hookloop.data.random.states import generators_kept
from hookloop.engine.hook import SCHEDULES, Hook, Priority, reaches_outside
from hookloop.errors import HookloopError
from hookloop.every import count_of
from hookloop.hooks.saving.save_checkpoint import SaveCheckpoint
from hookloop.outcome import Outcome
from hookloop.parallel.settings import Parallel
from hookloop.parallel.world import World
from hookloop.trainer.default_hooks import default_hooks, our_name, own_hooks
from hookloop.trainer.intended_changes import Resume
from hookloop.trainer.state.run_state import RunState
from hookloop.trainer.trainer import Trainer

if TYPE_CHECKING:
    from hookloop.checkpoint.store.index import Saved
    from hookloop.engine.run import Run

Arguments = dict[str, object]
"""The arguments of a Trainer, by name."""

LeaveOut = Callable[[Hook], str | None]
"""Returns why a hook is left out; None if it is kept."""


@dataclass(frozen=True)
class ShortRun:
    """What a short run has shown.

    Attributes:
        trainer: Its Trainer, which has ended; its directory may be gone.
        outcome: How it ended.
        state: What a checkpoint after its last iteration holds. On many ranks, each has its part.
        left_out: The hooks that it did without, each with the reason.
    """

    trainer: Trainer
    outcome: Outcome
    state: Mapping[str, object] = field(repr=False)
    left_out: Mapping[str, str]

    @property
    def iters(self) -> int:
        """The iteration after which it ended, counted as the whole training counts."""
        return self.trainer.run.progress.iter


def short_run(
    make: Callable[[Path], Mapping[str, object]],
    *,
    iters: int | None,
    hooks: Sequence[Hook] = (),
    start: Saved | Resume | str | Path | None = None,
    leave_out: LeaveOut = reaches_outside,
    run_dir: Path | None = None,
    may_end_early: bool = False,
) -> ShortRun:
    """Train for a few iterations with new objects, in a directory that goes away.

    Nothing else is written, and checkpoints go into that directory, too, whatever directory a hook
    names. The random numbers of the process are set back.

    Args:
        make: Returns the arguments of a new Trainer, given its directory. It builds new objects:
            those that it returns are trained.
        iters: The iteration after which it ends, counted from the beginning of the whole training;
            None for all of it.
        hooks: Hooks besides those of the training.
        start: The checkpoint to continue from, of any run; None for the beginning.
        leave_out: Returns why a hook is left out, the default hooks too; by default those that send
            to a service or write elsewhere.
        run_dir: A directory that stays.
        may_end_early: Whether it may end before ``iters``, because a limit or a hook ends it.

    Raises:
        HookloopError: If nothing was trained, or iteration ``iters`` was not reached.

    >>> import torch
    >>> def make(run_dir):
    ...     model = torch.nn.Linear(1, 1)
    ...     return {
    ...         "model": model,
    ...         "train_data": [(torch.ones(2, 1), torch.zeros(2, 1))] * 9,
    ...         "loss": torch.nn.functional.mse_loss,
    ...         "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
    ...         "max_epochs": 9,
    ...     }
    >>> short = short_run(make, iters=3)
    >>> short.outcome.status, short.iters, short.state["progress"]["iter"], short.left_out
    ('completed', 3, 3, {})
    """
    place = TemporaryDirectory(prefix="hookloop-short-") if run_dir is None else nullcontext()
    with place as scratch, generators_kept():
        directory = run_dir if scratch is None else Path(scratch) / "run"
        assert directory is not None
        keeper = _KeepState()
        given = {**make(directory), "run_dir": directory, "resume": _location(start)}
        trainer, left_out = shortened(
            given, iters=iters, hooks=[*hooks, keeper], leave_out=leave_out
        )
        outcome = trainer.train()
    short = ShortRun(trainer, outcome, keeper.state, left_out)
    if keeper.begun == short.iters:
        raise HookloopError(
            f"The short run made no iteration: it began after {short.iters}, where the training "
            f"ends ({outcome})."
        )
    if iters is not None and short.iters != iters and not may_end_early:
        raise HookloopError(
            f"The short run ended after {count_of(short.iters, 'iteration')}, before iteration "
            f"{iters} ({outcome})."
        )
    return short


def _location(start: Saved | Resume | str | Path | None) -> Resume | str | None:
    if isinstance(start, Resume):
        return start
    if start is None or isinstance(start, str | Path):
        return None if start is None else str(start)
    return str(start.path)


class _KeepState(Hook):
    """Keeps what a checkpoint at the end of the training would hold."""

    name = "keep_state"
    priority = Priority.LOWEST
    draws_random_numbers = False

    def __init__(self) -> None:
        self.begun = 0
        self.state: Mapping[str, object] = {}

    def before_train(self, run: Run) -> None:
        """Note where it begins."""
        self.begun = run.progress.iter

    def before_save_checkpoint(self, run: Run, checkpoint: MutableMapping[str, object]) -> None:
        """Remove this hook from the checkpoint, which may be continued without it."""
        cast("dict[str, object]", checkpoint["hooks"]).pop(self.name, None)

    def after_train(self, run: Run) -> None:
        """Copy the state; all ranks take part."""
        state = RunState(run).gather()
        cast("dict[str, object]", state["hooks"]).pop(self.name)
        self.state = Snapshot().take(state)


def shortened(
    given: Mapping[str, object],
    *,
    iters: int | None = None,
    hooks: Sequence[Hook] = (),
    checkpoints: SaveCheckpoint | None = None,
    is_quiet: bool = True,
    leave_out: LeaveOut = reaches_outside,
) -> tuple[Trainer, dict[str, str]]:
    """Build the Trainer of a short run; return it, and the hooks that were left out and why.

    Args:
        given: The arguments of the whole training, with the directory of the short one.
        iters: How many iterations to train at most.
        hooks: Hooks besides those of the training.
        checkpoints: What saves, instead of the default hook.
        is_quiet: Whether it shows no progress.
        leave_out: Which hooks are left out, and why.
    """
    left_out: dict[str, str] = {}

    def is_kept(hook: Hook) -> bool:
        if isinstance(hook, SaveCheckpoint):
            hook.directory = None
        reason = leave_out(hook)
        if reason is not None:
            left_out[hook.name] = reason
        return reason is None

    changed = given.get("default_hooks")
    if changed is not False:
        entries = cast("Mapping[str, Hook | None]", changed or {})
        changed = {our_name(name): hook for name, hook in entries.items()}
        changed |= {"checkpoint": checkpoints} if checkpoints is not None else {}
        changed |= {"console": None} if is_quiet else {}
        checkpoints = None
    logical = Parallel.parse(given.get("parallel")).logical  # type: ignore[arg-type]
    standard = default_hooks(
        cast("Mapping[str, Hook | None] | Literal[False]", changed),
        is_alone=World.from_environment().is_alone or bool(logical),
    )
    own = own_hooks(cast("Iterable[Hook] | Mapping[str, Hook | None] | None", given.get("hooks")))
    kept = [hook for hook in [*standard, *own] if is_kept(hook)]
    kept += [checkpoints] if checkpoints is not None else []
    named = {**given, "default_hooks": False, "hooks": [*kept, *hooks]}
    if left_out and not any(SCHEDULES in hook.owns for hook in kept):
        named["schedule"] = None  # A schedule that no hook steps would be rejected.
    if iters is not None:
        limit = given.get("max_iters")
        named["max_iters"] = min(limit, iters) if isinstance(limit, int) else iters
    return Trainer(**named), left_out  # type: ignore[arg-type]
