"""`ScheduleParameter`: moves momentum, weight decay or any other setting of an optimizer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, cast

from hookloop.core.hook import Hook
from hookloop.errors import HookError, nearest
from hookloop.every import Every

if TYPE_CHECKING:
    from hookloop.core.run import Run

SHAPES = ("linear", "cosine", "constant")


class ScheduleParameter(Hook):
    """Lead a setting of the parameter groups from one value to another, iteration by iteration.

    For learning rates there are torch's schedulers and `StepSchedules`. The value follows from the
    iterations done alone, so a resumed run goes on exactly. Before an iteration it is set to what
    belongs to the iterations completed: ``start`` before the first, ``end`` from ``over`` on.

    Args:
        parameter: ``"momentum"``, ``"weight_decay"``, ``"eps"``; ``"betas.0"`` for one of several.
        start: First value.
        end: Last value.
        shape: ``"linear"``, ``"cosine"`` (half a wave), or ``"constant"`` (a jump at the end).
        over: How long it takes, for example ``"5 epochs"``; the whole run by default.
        optimizer: Name of the optimizer, when there are several.
        group: Number or name of the parameter group; all by default.

    Example:
        >>> hook = ScheduleParameter("weight_decay", start=0.04, end=0.4, shape="cosine")
        >>> [round(hook.value(done), 3) for done in (0.0, 0.5, 1.0)]
        [0.04, 0.22, 0.4]
    """

    takes_part_in_training = True

    def __init__(
        self,
        parameter: str,
        *,
        start: float,
        end: float,
        shape: Literal["linear", "cosine", "constant"] = "linear",
        over: Every | int | str | None = None,
        optimizer: str | None = None,
        group: int | str | None = None,
    ) -> None:
        if shape not in SHAPES:
            raise HookError(
                f"ScheduleParameter: shape='{shape}': write {', '.join(SHAPES)}."
                f"{nearest(shape, SHAPES)}"
            )
        try:
            self.over = None if over is None else Every.parse(over)
        except ValueError as error:
            raise HookError(f"ScheduleParameter: over: {error}") from error
        if self.over is not None and self.over.unit == "seconds":
            raise HookError(f"ScheduleParameter: over='{over}': write iterations or epochs.")
        self.parameter, _, place = parameter.partition(".")
        self._place = int(place) if place.isdigit() else None
        self.start = start
        self.end = end
        self.shape = shape
        self.optimizer = optimizer
        self.group = group
        self._iters = 1
        self._led: list[dict[str, object]] = []

    def value(self, done: float) -> float:
        """Return the value when a part of the way, from 0 to 1, is done."""
        if self.shape == "constant":
            return self.end if done >= 1 else self.start
        if self.shape == "cosine":
            done = (1 - math.cos(math.pi * done)) / 2
        return self.start + (self.end - self.start) * done

    def before_train(self, run: Run) -> None:
        self._iters, self._led = self._length(run), self._groups(run)
        for group in self._led:
            if self.parameter not in group:
                known = [name for name in group if name != "params"]
                raise HookError(
                    f"ScheduleParameter: the optimizer has no '{self.parameter}'."
                    f"{nearest(self.parameter, known)} It has: {', '.join(known)}."
                )

    def before_train_iter(self, run: Run) -> None:
        value = self.value(min(1.0, run.progress.iter / self._iters))
        for group in self._led:
            if self._place is None:
                group[self.parameter] = value
            else:
                several = list(cast("Sequence[float]", group[self.parameter]))
                several[self._place] = value
                group[self.parameter] = tuple(several)

    def _length(self, run: Run) -> int:
        progress = run.progress
        if self.over is None:
            iters = progress.total_iters
        elif self.over.unit == "epochs":
            iters = progress.epoch_iters and int(self.over.count) * progress.epoch_iters
        else:
            iters = int(self.over.count)
        if not iters:
            raise HookError(
                f"ScheduleParameter: how many iterations '{self.over or 'the run'}' has is not "
                "known: give over= in iterations."
            )
        return iters

    def _groups(self, run: Run) -> list[dict[str, object]]:
        if self.optimizer is not None and self.optimizer not in run.optimizers:
            raise HookError(
                f"ScheduleParameter: there is no optimizer '{self.optimizer}'."
                f"{nearest(self.optimizer, run.optimizers)}"
            )
        optimizer = run.optimizers[self.optimizer] if self.optimizer else run.optimizer
        groups = optimizer.param_groups
        chosen = [
            group
            for number, group in enumerate(groups)
            if self.group in (None, number, group.get("name"))
        ]
        if not chosen:
            raise HookError(
                f"ScheduleParameter: no parameter group '{self.group}' among {len(groups)}."
            )
        return chosen
