"""`RequireMetric`: end a run that is not good enough in time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, cast

from hookloop.checkpoint.state.shape import check_state, is_flag
from hookloop.errors import HookError
from hookloop.hooks._intervals import moment_of
from hookloop.hooks.ending._watch_metric import WatchMetric

if TYPE_CHECKING:
    from hookloop.engine.run import Run


class RequirementNotMetError(RuntimeError):
    """The metric of a run was not good enough in time: the run failed, though nothing crashed."""


class RequireMetric(WatchMetric):
    """Require that a metric passes a limit at least once, by a given moment of the run.

    NaN never passes. A run that ends before that moment is not checked.

    Args:
        metric: What to watch: ``"val/accuracy"``.
        above: The limit that the metric must exceed. Give this or ``below``.
        below: The limit that the metric must fall below.
        by: By when, for example ``"10 epochs"`` or a number of iterations. The decision is made at
            the first value at or after that moment.
        otherwise: ``"fail"`` ends the run as failed, ``"stop"`` ends it normally.
        stop_when_met: Whether to stop as soon as the limit is passed.

    Example:
        >>> RequireMetric("val/accuracy", above=0.9, by="5 epochs").passes(0.93)
        True
        >>> RequireMetric("val/accuracy", by="5 epochs")
        Traceback (most recent call last):
        hookloop.errors.HookError: RequireMetric: give either above= or below=.
    """

    takes_part_in_training = True

    def __init__(
        self,
        metric: str,
        *,
        above: float | None = None,
        below: float | None = None,
        by: int | str = "1 epoch",
        otherwise: Literal["fail", "stop"] = "fail",
        stop_when_met: bool = False,
    ) -> None:
        super().__init__(metric)
        if (above is None) == (below is None):
            raise HookError("RequireMetric: give either above= or below=.")
        if otherwise not in ("fail", "stop"):
            raise HookError(f"RequireMetric: otherwise='{otherwise}': write 'fail' or 'stop'.")
        self.above = above
        self.below = below
        self.by = moment_of(self, "by", by)
        self.otherwise = otherwise
        self.stop_when_met = stop_when_met
        # The training ends either way: when the requirement is met, or at the moment it is not.
        self.ends_training = stop_when_met
        self._met = False

    def state_dict(self) -> dict[str, object]:
        return {"met": self._met}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        check_state(state, {"met": is_flag})
        self._met = cast("bool", state["met"])

    def passes(self, value: float) -> bool:
        """Return whether a value is good enough."""
        if self.above is not None:
            return value > self.above
        return self.below is not None and value < self.below

    def look(self, run: Run, value: float) -> None:
        if self.passes(value):
            self._met = True
            if self.stop_when_met:
                run.stop(f"{self.metric} is {value:.6g}, as required", everywhere=True)
        # Once met is enough: a metric may get worse again afterwards.
        if self._met or not self.by.reached(run.progress):
            return
        wanted = f"above {self.above}" if self.above is not None else f"below {self.below}"
        message = f"{self.metric} is {value:.6g} and never was {wanted} within {self.by}"
        if self.otherwise == "fail":
            raise RequirementNotMetError(message)
        run.stop(message, everywhere=True)
