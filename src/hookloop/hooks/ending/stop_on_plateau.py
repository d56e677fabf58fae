"""`StopOnPlateau`: end the training when a metric no longer improves."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from hookloop.errors import HookError
from hookloop.every import count_of
from hookloop.hooks._intervals import moment_of
from hookloop.hooks.schedules.act_on_plateau import ActOnPlateau, Mode

if TYPE_CHECKING:
    from hookloop.engine.run import Run


class StopOnPlateau(ActOnPlateau):
    """Stop when a metric has stalled, has reached a threshold, or has diverged.

    The best value, and how long ago it was reached, survive a resume. NaN never counts as the best,
    and a metric that stays NaN ends the training even with ``check_finite=False``.

    Args:
        metric: What to watch, after each validation: ``"val/loss"``.
        patience: Validations in a row without improvement after which to stop; 5 by default.
        min_delta: By how much a value must beat the best to be an improvement.
        mode: Whether ``"greater"`` or ``"less"`` is better; inferred from the metric's name by
            default.
        threshold: Stop as soon as the metric is this good.
        check_finite: Whether to stop at once on NaN or infinity.
        diverged: Stop at once if the metric is worse than this bound, or not finite.
        begin: When to start watching, in completed iterations or epochs: ``500``, ``"5 epochs"``.
            Before this, only a value that is not finite ends the training, and no value counts as
            the best.
        long_term: Instead of ``patience``: stop when the mean of the last ``short_term`` values is
            worse than that of the last ``long_term``.
        short_term: See ``long_term``.

    Example:
        >>> hook = StopOnPlateau("val/accuracy", patience=3, threshold=0.99)
        >>> hook.rule, hook.patience
        ('greater', 3)
        >>> StopOnPlateau("val/zebra")
        Traceback (most recent call last):
        hookloop.errors.HookError: StopOnPlateau: the name 'val/zebra' does not show whether ...
    """

    ends_training = True  # Sooner or later every metric stalls.
    takes_part_in_training = True

    def __init__(  # noqa: PLR0913 - two forms of one question
        self,
        metric: str = "val/loss",
        *,
        patience: int | None = None,
        min_delta: float = 0.0,
        mode: Mode | None = None,
        threshold: float | None = None,
        check_finite: bool = True,
        diverged: float | None = None,
        begin: int | str | None = None,
        long_term: int | None = None,
        short_term: int | None = None,
    ) -> None:
        super().__init__(
            metric,
            patience=patience,
            min_delta=min_delta,
            mode=mode,
            long_term=long_term,
            short_term=short_term,
        )
        self.threshold = threshold
        self.check_finite = check_finite or diverged is not None
        self.diverged = diverged
        self.begin = None if begin is None else moment_of(self, "begin", begin)
        if diverged is not None and threshold is not None and self._is_worse(threshold, diverged):
            raise HookError(
                f"StopOnPlateau: threshold={threshold:g} is worse than diverged={diverged:g}: "
                f"every value would end the training, as {self.rule} is better."
            )

    def look(self, run: Run, value: float) -> None:
        if self.check_finite and not isfinite(value):
            run.stop(f"{self.metric} is {value:g}", everywhere=True)
        if self.begin is not None and not self.begin.reached(run.progress):
            return
        if self.diverged is not None and self._is_worse(value, self.diverged):
            reason = f"{self.metric} is {value:.6g}, worse than {self.diverged:g}: it has diverged"
            run.stop(reason, everywhere=True)
        if self._reached(value):
            run.stop(f"{self.metric} has reached {value:.6g}", everywhere=True)
        # Also then: of several reasons the run keeps the first, and the best value stays current.
        super().look(run, value)

    def act(self, run: Run) -> None:
        # There is no best value if all were NaN or infinite.
        best = "no number at all" if self.best is None else f"{self.best:.6g}"
        if self.windows is not None:
            long, short = self.windows
            reason = f"{self.metric} is worse over {short} validations than over {long}"
        else:
            time = count_of(self.patience, "validation")
            reason = f"{self.metric} has not improved on {best} for {time}"
        run.stop(reason, everywhere=True)

    def _reached(self, value: float) -> bool:
        if self.threshold is None:
            return False
        return value >= self.threshold if self.rule == "greater" else value <= self.threshold
