"""`ScheduleParameter`: change momentum, weight decay or another setting during training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, cast

from hookloop.engine.hook import Hook
from hookloop.errors import HookError, nearest
from hookloop.every import Every

if TYPE_CHECKING:
    from hookloop.engine.run import Run
    from hookloop.requests import Rewind

SHAPES = ("linear", "cosine", "constant")


class ScheduleParameter(Hook):
    """Move a setting of the parameter groups from one value to another, iteration by iteration.

    For learning rates use torch's schedulers, which `StepSchedules` steps. The value depends only
    on the number of completed iterations, so a resumed run continues exactly. It is ``start``
    before the first iteration and ``end`` once ``over`` has passed.

    Args:
        parameter: ``"momentum"``, ``"weight_decay"``, ``"eps"``; ``"betas.0"`` for one of several.
        start: First value.
        end: Last value.
        shape: ``"linear"``, ``"cosine"`` (half a period), or ``"constant"`` (a jump at the end).
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
        if self.over is not None and self.over.unit not in ("iters", "epochs"):
            raise HookError(f"ScheduleParameter: over='{over}': write iterations or epochs.")
        self.parameter, _, index = parameter.partition(".")
        self._index = int(index) if index.isdigit() else None
        self.start = start
        self.end = end
        self.shape = shape
        self.optimizer = optimizer
        self.group = group
        self._iters = 1
        self._chosen: list[dict[str, object]] = []

    def value(self, done: float) -> float:
        """Return the value after a part of the way, from 0 to 1."""
        if self.shape == "constant":
            return self.end if done >= 1 else self.start
        if self.shape == "cosine":
            done = (1 - math.cos(math.pi * done)) / 2
        return self.start + (self.end - self.start) * done

    def before_train(self, run: Run) -> None:
        self._iters, self._chosen = self._length(run), self._groups(run)
        for group in self._chosen:
            # Setting an unknown key would raise nothing and change nothing.
            if self.parameter not in group:
                settings = [name for name in group if name != "params"]
                raise HookError(
                    f"ScheduleParameter: the optimizer has no '{self.parameter}'."
                    f"{nearest(self.parameter, settings)} It has: {', '.join(settings)}."
                )

    def after_rewind(self, run: Run, rewind: Rewind) -> None:
        self._chosen = self._groups(run)  # Loading its state gives an optimizer new groups.

    def before_train_iter(self, run: Run) -> None:
        # Computed, never accumulated: no state to save, and nothing drifts.
        value = self.value(min(1.0, run.progress.iter / self._iters))
        for group in self._chosen:
            if self._index is None:
                group[self.parameter] = value
            else:
                several = list(cast("Sequence[float]", group[self.parameter]))
                several[self._index] = value
                group[self.parameter] = tuple(several)  # torch's optimizers hold betas as a tuple.

    def _length(self, run: Run) -> int:
        progress = run.progress
        if self.over is None:
            iters = progress.total_iters
        elif self.over.unit == "epochs":  # The length of an epoch may be unknown.
            iters = progress.epoch_iters and int(self.over.count) * progress.epoch_iters
        else:
            iters = int(self.over.count)
        if not iters:
            raise HookError(
                "ScheduleParameter: the number of iterations in "
                f"'{self.over or 'the run'}' is not known: give over= in iterations."
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
