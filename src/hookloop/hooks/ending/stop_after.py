"""`StopAfter`: end the run after a number of epochs, iterations, minutes, samples or tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from hookloop.engine.hook import Hook
from hookloop.errors import HookError
from hookloop.every import count_of
from hookloop.hooks._stopwatch import Stopwatch

if TYPE_CHECKING:
    from hookloop.engine.run import Run


class StopAfter(Hook):
    """Stop the run once any of the given limits is reached.

    Minutes add up over all parts of a resumed run.

    Args:
        epochs: Completed epochs after which to stop.
        iterations: Completed iterations after which to stop.
        minutes: Minutes of training after which to stop, checked after each iteration.
        samples: Samples trained on, over all ranks, after which to stop.
        tokens: The same for tokens; see `Trainer`'s ``count_tokens``.

    Example:
        >>> StopAfter(epochs=100).epochs
        100
        >>> StopAfter()
        Traceback (most recent call last):
        hookloop.errors.HookError: StopAfter needs a limit: give epochs, iterations, ...
    """

    ends_training = True
    takes_part_in_training = True

    def __init__(
        self,
        epochs: int | None = None,
        iterations: int | None = None,
        minutes: float | None = None,
        samples: int | None = None,
        tokens: int | None = None,
    ) -> None:
        counted = {"samples": samples, "tokens": tokens}
        limits = {"epochs": epochs, "iterations": iterations, "minutes": minutes, **counted}
        if all(value is None for value in limits.values()):
            *names, last = limits
            raise HookError(f"StopAfter needs a limit: give {', '.join(names)} or {last}.")
        for name, value in limits.items():
            if value is not None and value <= 0:
                raise HookError(f"StopAfter: {name} must be positive, not {value}.")
        self.epochs = epochs
        self.iterations = iterations
        self.minutes = minutes
        self.samples = samples
        self.tokens = tokens
        self.counts = tuple(name for name, limit in counted.items() if limit is not None)
        self._watch = Stopwatch()

    def state_dict(self) -> dict[str, object]:
        return {"seconds": self._watch.seconds}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        self._watch.load(cast("float", state["seconds"]))

    def describe(self, run: Run) -> Mapping[str, object]:
        done = run.progress
        counted = {"samples": done.samples, "tokens": done.tokens}
        at = {"epochs": done.epoch, "iterations": done.iter, **counted}
        shown = {name: f"{at[name]} of {getattr(self, name)}" for name in at if getattr(self, name)}
        minutes = {"minutes": f"{self._watch.seconds / 60:.1f} of {self.minutes:g}"}
        return shown | (minutes if self.minutes is not None else {})

    def before_train(self, run: Run) -> None:
        self._watch.start()
        # A run that ended here and is resumed with the same limits is already over.
        self.after_train_iter(run)
        self.after_train_epoch(run)

    def after_train(self, run: Run) -> None:
        self._watch.stop()

    def after_train_iter(self, run: Run) -> None:
        if self.iterations is not None and run.progress.iter >= self.iterations:
            run.stop(_done(self.iterations, "iteration"), everywhere=True)
        for unit in self.counts:
            limit = getattr(self, unit)
            if (getattr(run.progress, unit) or 0) >= limit:
                run.stop(_done(limit, unit.removesuffix("s")), everywhere=True)
        # Clocks differ from rank to rank, so only that of the first one counts.
        minutes = self.minutes if run.world.is_main else None
        if minutes is not None and self._watch.seconds >= 60 * minutes:
            run.stop(f"{count_of(minutes, 'minute')} {'has' if minutes == 1 else 'have'} passed")

    def after_train_epoch(self, run: Run) -> None:
        if self.epochs is not None and run.progress.epoch >= self.epochs:
            run.stop(_done(self.epochs, "epoch"), everywhere=True)


def _done(count: int, noun: str) -> str:
    return f"{count_of(count, noun)} {'is' if count == 1 else 'are'} done"
