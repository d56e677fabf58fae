"""A training of a few iterations, in a directory that goes away, without what reaches out of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from hookloop.engine.hook import Hook, reaches_outside
from hookloop.hooks.save_checkpoint import SaveCheckpoint
from hookloop.outcome import Outcome
from hookloop.trainer.trainer import Trainer

Arguments = dict[str, object]
"""The arguments of a Trainer, by name."""

LeaveOut = Callable[[Hook], str | None]
"""Returns why a hook is left out; None if it is kept."""


@dataclass(frozen=True)
class ShortRun:
    """A Trainer that leaves no trace outside of its directory.

    Attributes:
        trainer: The Trainer.
        left_out: The hooks that it does without, each with the reason.
    """

    trainer: Trainer
    left_out: Mapping[str, str]

    def train(self, *, max_iters: int | None = None) -> Outcome:
        """Train it."""
        return self.trainer.train(max_iters=max_iters)


def short_run(
    given: Mapping[str, object],
    *,
    iters: int | None = None,
    hooks: Sequence[Hook] = (),
    checkpoints: SaveCheckpoint | None = None,
    is_quiet: bool = True,
    leave_out: LeaveOut = reaches_outside,
) -> ShortRun:
    """Build the Trainer of a short run.

    Checkpoints go into the directory of the run, whatever directory a hook of the user's names.

    Args:
        given: The arguments of the whole training, with the directory of the short one.
        iters: How many iterations to train at most.
        hooks: Hooks besides those of the training.
        checkpoints: What saves, instead of the default hook.
        is_quiet: Whether it shows no progress.
        leave_out: Which hooks are left out, and why.

    >>> import torch
    >>> model = torch.nn.Linear(1, 1)
    >>> given = {
    ...     "model": model,
    ...     "train_data": [(torch.ones(2, 1), torch.zeros(2, 1))] * 9,
    ...     "loss": torch.nn.functional.mse_loss,
    ...     "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
    ...     "max_epochs": 9,
    ...     "default_hooks": False,
    ... }
    >>> short = short_run(given, iters=3)
    >>> short.train().status, short.trainer.run.progress.iter, short.left_out
    ('completed', 3, {})
    """
    left_out: dict[str, str] = {}

    def is_kept(hook: Hook) -> bool:
        if isinstance(hook, SaveCheckpoint):
            hook.directory = None
        reason = leave_out(hook)
        if reason is not None:
            left_out[hook.name] = reason
        return reason is None

    named = dict(given)
    named["hooks"] = [
        *(hook for hook in cast("Sequence[Hook]", given.get("hooks") or ()) if is_kept(hook)),
        *hooks,
    ]
    defaults = given.get("default_hooks")
    if defaults is not False:
        changed = cast("Mapping[str, Hook | None]", defaults or {})
        kept = {name: one for name, one in changed.items() if one is None or is_kept(one)}
        kept |= {"checkpoint": checkpoints} if checkpoints is not None else {}
        named["default_hooks"] = kept | ({"console": None} if is_quiet else {})
    elif checkpoints is not None:
        named["hooks"] = [*cast("list[Hook]", named["hooks"]), checkpoints]
    if iters is not None:
        limit = given.get("max_iters")
        named["max_iters"] = min(limit, iters) if isinstance(limit, int) else iters
    return ShortRun(Trainer(**named), left_out)  # type: ignore[arg-type]
