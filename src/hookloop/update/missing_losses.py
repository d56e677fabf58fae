"""A training that makes no updates: a `return` was forgotten, or the loss is of another model.

A step may return no loss for some batches, or one without a gradient. One that always does is a
mistake, and its training would complete like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hookloop.errors import ModelError
from hookloop.every import count_of

if TYPE_CHECKING:
    from hookloop.engine.run import Run

FIRST = 10
"""How many iterations without an update are a mistake; at the start, an epoch is enough."""


class MissingLosses:
    """Rejects a training whose steps return no loss that trains, unless they say that they skip.

    An iteration in which an update is made costs nothing.

    Args:
        names: Those of the updates of an iteration; empty text for the only one.
    """

    def __init__(self, names: Sequence[str] = ("",)) -> None:
        self._names = tuple(names)
        self._declared: dict[str, int] = {}
        self._since: dict[str, tuple[int, int]] = {}  # The first and last iteration of a row.
        self._has_loss = False  # The last one noted.
        self._rank: int | None = None  # The same; on which rank, where others had a loss.

    def declare(self, name: str, run: Run) -> None:
        """Note that a step skips the current update on purpose."""
        if run.phase == "train":
            self._declared[name] = run.progress.iter + 1

    def note(
        self, name: str, run: Run, *, has_loss: bool = False, is_of_rank: bool = False
    ) -> None:
        """Note that there was no loss for the current update, or one that gave no gradient.

        Args:
            name: That of the update.
            run: The run.
            has_loss: Whether there was one.
            is_of_rank: Whether other ranks had one, so that an update is made.

        Raises:
            ModelError: If there was none often enough that it must be a mistake.
        """
        self._has_loss = has_loss
        self._rank = run.world.rank if is_of_rank else None
        progress, now = run.progress, run.progress.iter + 1
        if self._declared.get(name) == now:
            return
        first, last = self._since.get(name, (now, now))
        first = first if last in (now - 1, now) else now
        self._since[name] = (first, now)
        # A batch with nothing to learn from, whose loss is a 0 of its own, may well be the first.
        soon = FIRST if has_loss else min(FIRST, progress.epoch_iters or FIRST)
        if now == soon and self._nothing_until(now):
            raise self._error(self._names, f"in the first {count_of(now, 'iteration')}")
        # An epoch may be a single iteration, and an update be made in every fifth.
        is_whole = progress.iter_in_epoch + 1 == progress.epoch_iters
        if is_whole and now - first + 1 >= max(FIRST, progress.epoch_iters or 0):
            raise self._error([name], "through a whole epoch")

    def check_end(self, run: Run) -> None:
        """Reject a training that has ended without any update."""
        made = run.progress.iter
        if made and not (run.is_interrupted or self._has_loss) and self._nothing_until(made):
            raise self._error(self._names, f"in {count_of(made, 'iteration')}")

    def _nothing_until(self, now: int) -> bool:
        return all(self._since.get(name) == (1, now) for name in self._names)

    def _error(self, names: Sequence[str], when: str) -> ModelError:
        if self._has_loss:
            which = " and ".join(
                f"the optimizer '{name}'" if name else "optimizer=" for name in names
            )
            return ModelError(
                f"The loss gave no gradient to any parameter of {which} {when}, so that nothing "
                "was trained: compute it with run.model, whose parameters the optimizer has, and "
                "detach nothing on the way to it.",
                argument="step",
            )
        steps = " and ".join(f"step['{name}']" if name else "step=" for name in names)
        lost = "nothing was trained"
        if self._rank is not None:
            when, lost = f"{when} on rank {self._rank}", "its part of the data was not trained"
        return ModelError(
            f"{steps} returned None {when}, so that {lost}: return the loss. If it "
            "skips updates on purpose, write run.skip_update() there. If it makes them itself, use "
            "trainer.loop().",
            argument="step",
        )
