"""`RollBack`: when the loss jumps, go back to the last checkpoint and leave out the batch."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import isfinite
from statistics import median
from typing import TYPE_CHECKING, cast

from hookloop.checkpoint.saving.request import Save
from hookloop.checkpoint.state.shape import (
    Each,
    Maybe,
    check_state,
    is_count,
    is_number,
    is_text,
    one_of,
)
from hookloop.data.position.skipped import number_of
from hookloop.engine.hook import Hook, Priority
from hookloop.errors import HookError
from hookloop.hooks.saving.save_checkpoint import SaveCheckpoint
from hookloop.runs.checkpoint_names import checkpoint_name

if TYPE_CHECKING:
    from hookloop.engine.run import Run
    from hookloop.requests import Rewind

_log = logging.getLogger("hookloop")


class RollBack(Hook):
    """Go back to the newest checkpoint when a training metric jumps, and skip the bad batches.

    A value has jumped if it is NaN, infinite, or more than ``factor`` times the median of the last
    ``window`` values. The run then continues from the newest checkpoint before that iteration, as a
    resume would, without the batches that led to the jump; its epoch has that many iterations
    fewer. Each return is a warning in the log and an entry among the changes in ``summary.json``,
    and ``train/rewinds`` counts them. At the next jump after ``most`` returns, the run fails with a
    `FloatingPointError`.

    With ``diagnose`` the run first goes back without leaving anything out, to at least one
    iteration before those in question: without a jump this time, it was *arithmetic*, and the run
    continues as if nothing had been. Otherwise it goes back again without the batches: without a
    jump, it was the *batch*. With one, leaving out does not help: it was the *weights*, nothing is
    left out, and the run goes back further. The verdict is a warning and a line ``diagnosis`` in
    ``interventions.jsonl``, which ``hookloop tree`` shows.

    How far it goes back depends on `SaveCheckpoint`: choose the interval of that hook accordingly.
    A checkpoint is made at the start, so there always is one. One number is read in each iteration,
    so the host waits for the GPU, but no checkpoint is made of an iteration that jumped. With the
    loss scaler of half precision, values that are not finite are left to the scaler.

    Args:
        metric: A training metric that has a value in each iteration and is never negative.
        window: How many values the median is taken of; until there are that many, only values that
            are not finite count as a jump.
        factor: How many times the median counts as a jump.
        skip: How many iterations lose their data: that of the jump and those before it.
        most: How many times to go back, at most; all that belongs to one jump counts once.
        diagnose: Whether to find out what has led to the jump.

    Example:
        >>> RollBack(factor=5).window
        100
    """

    guards_by = "rewinding"
    takes_part_in_training = True
    draws_random_numbers = False
    # Before the hooks that fail on a loss that is not finite, or save what it leads to.
    priority = Priority.ABOVE_NORMAL
    writes = ("train/rewinds",)

    def __init__(
        self,
        metric: str = "train/loss",
        *,
        window: int = 100,
        factor: float = 3.0,
        skip: int = 1,
        most: int = 3,
        diagnose: bool = False,
    ) -> None:
        for name, number, least in (("window", window, 2), ("skip", skip, 0), ("most", most, 1)):
            if number < least:
                raise HookError(f"RollBack: {name} must be at least {least}, not {number}.")
        if diagnose and not skip:
            raise HookError("RollBack: diagnose=True needs skip=1 or more: what may be at fault.")
        if factor <= 1:
            raise HookError(f"RollBack: factor must be more than 1, not {factor}.")
        if not metric.startswith("train/"):
            raise HookError(
                f"RollBack: metric='{metric}' is not one of the training, such as 'train/loss'. "
                "For a validation that gets worse there are StopOnPlateau and ActOnPlateau."
            )
        self.metric = metric
        self.reads = (metric,)
        self.window = window
        self.factor = factor
        self.skip = skip
        self.most = most
        self.diagnose = diagnose
        self._case: _Case | None = None
        self._values: deque[float] = deque(maxlen=window)
        self._seen: dict[str, int] = {}
        self._rewinds = 0

    def describe(self, run: Run) -> dict[str, object]:
        return {"rewinds": self._rewinds, "most": self.most}

    def state_dict(self) -> dict[str, object]:
        case = {} if self._case is None else {"case": asdict(self._case)}
        return {"values": list(self._values), "rewinds": self._rewinds, **case}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        shape = {"values": Each(is_number), "rewinds": is_count, "case?": Maybe(_CASE)}
        check_state(state, shape)
        self._values = deque(cast("list[float]", state["values"]), maxlen=self.window)
        # The checkpoint that the run goes back to does not know how often it went back since.
        self._rewinds = max(self._rewinds, cast("int", state["rewinds"]))
        # Nor does it know why. A run that is resumed goes on with what it was doing.
        case = state.get("case")
        if self._case is None and isinstance(case, Mapping) and self.diagnose:
            self._case = _Case(**case)

    def check_in(self, run: Run) -> None:
        if run.train_data is not None and run.train_data.is_one_pass:
            raise HookError(
                f"RollBack cannot go back: {run.train_data.name} can be read only once. Give a "
                "loader or another object that can be read again."
            )
        for hook in run.hooks:
            if hook.guards_by == "stopping":
                raise HookError(
                    f"RollBack never acts on NaN beside '{hook.name}', which ends the run within "
                    f"the iteration: leave out {type(hook).__name__}, or let it look less often "
                    "(every=10)."
                )

    def before_train(self, run: Run) -> None:
        self.check_in(run)
        self._seen = run.metrics.counts([self.metric])
        has_saves = any(isinstance(hook, SaveCheckpoint) for hook in run.hooks)
        if run.world.is_main and not has_saves:
            _log.warning("RollBack: without SaveCheckpoint the run goes back to where it started.")
        if run.progress.iter == 0:
            run.save(Save(checkpoint_name("iter", 0), owner=self.name), everywhere=True)

    def after_train_iter(self, run: Run) -> None:
        new = run.metrics.values_since(self._seen, [self.metric]).get(self.metric, [])
        self._seen = run.metrics.counts([self.metric])
        if not run.world.is_alone:  # They decide together, so it has to be by the same numbers.
            new = run._internals.ranks.share(new)
        for index, value in enumerate(new):
            iteration = run.progress.iter - (len(new) - 1 - index)
            if self._has_jumped(run, value):
                self._go_back(run, iteration, value)
                return
            self._values.append(value)
            if self._case is not None and iteration >= self._case.jump:
                self._conclude(run, "arithmetic" if self._case.stage == AGAIN else "batch")

    def after_rewind(self, run: Run, rewind: Rewind) -> None:
        self._seen = run.metrics.counts([self.metric])
        if self._case is not None:
            self._case.begun = rewind.to
        if self._rewinds:
            run.metrics.replace("train/rewinds", self._rewinds)  # A count has no mean.

    def _has_jumped(self, run: Run, value: float) -> bool:
        if not isfinite(value):
            return run._internals.scaler is None
        return len(self._values) == self.window and value > self.factor * median(self._values)

    def _go_back(self, run: Run, iteration: int, value: float) -> None:
        what = f"{self.metric} is {value:.4g} in iteration {iteration}"
        if len(self._values) == self.window:
            what += f", and its median was {median(self._values):.4g}"
        case = self._case
        if case is not None and iteration <= case.jump:
            if case.stage == AGAIN:
                self._leave_out(run, case, what)
            else:
                self._go_further(run, case, what)
            return
        if case is not None:  # Another one, later.
            self._conclude(run, "batch")
        if self._rewinds == self.most:
            raise FloatingPointError(
                f"{what}. The run went back {self.most} times already (most={self.most}). Try a "
                "smaller learning rate, clip_norm=1.0 or a larger skip=, or look at these batches."
            )
        self._rewinds += 1
        first = max(1, iteration - self.skip + 1)
        if self.diagnose:
            # A wrong update shows in the next iteration, so that the one before is made again, too.
            self._case = _Case(AGAIN, iteration, first, what, max(0, first - 2))
            run.rewind(self._case.begun, reason=f"{what}; the same again", everywhere=True)
            return
        skip = range(first, iteration + 1) if self.skip else ()
        run.rewind(iteration - 1, skip=skip, reason=what, everywhere=True)

    def _leave_out(self, run: Run, case: _Case, what: str) -> None:
        """It has jumped again: try without the batches."""
        case.stage = WITHOUT
        skip = range(case.first, case.jump + 1)
        case.numbers = [number_of(one, run.progress.skipped_iters) for one in skip]
        case.evidence.append(f"the same again: {what}")
        run.rewind(case.begun, skip=skip, reason=case.what, everywhere=True)

    def _go_further(self, run: Run, case: _Case, what: str) -> None:
        """It has jumped without the batches, too: nothing is left out, and it goes back further."""
        case.evidence.append(f"without the batches: {what}")
        numbers, begun = case.numbers, case.begun
        self._conclude(run, "weights")
        if begun == 0 or self._rewinds == self.most:
            older = "there is no older checkpoint" if begun == 0 else f"most={self.most}"
            raise FloatingPointError(
                f"{what}, with and without the batches: it comes from the weights, so that leaving "
                f"out does not help, and {older}. Try a smaller learning rate or clip_norm=1.0."
            )
        self._rewinds += 1
        run.rewind(
            begun - 1, reason=f"{what}; from older weights", read_again=numbers, everywhere=True
        )

    def _conclude(self, run: Run, verdict: str) -> None:
        """Record what has led to the jump."""
        case, self._case = self._case, None
        assert case is not None
        helped = {
            "arithmetic": "the same again did not jump",
            "batch": "without the batches it did not jump",
        }
        evidence = [*case.evidence, *([helped[verdict]] if verdict in helped else [])]
        window = [case.first, case.jump]
        run._internals.interventions.add(
            "diagnosis", run.progress.iter, verdict=verdict, jump=case.jump, window=window,
            reason=case.what, evidence=evidence,
        )  # fmt: skip
        if run.world.is_main:
            _log.warning("RollBack: %s: %s (%s).", case.what, verdict, "; ".join(evidence))


AGAIN, WITHOUT = "again", "without"
"""What is tried: the same iterations, or those without the batches in question."""

_CASE = {
    "stage": one_of(AGAIN, WITHOUT),
    "jump": is_count,
    "first": is_count,
    "what": is_text,
    "begun": is_count,
    "numbers": Each(is_count),
    "evidence": Each(is_text),
}


@dataclass
class _Case:
    """A jump whose cause is being looked for.

    Attributes:
        stage: What is tried now.
        jump: The iteration that jumped.
        first: The first iteration whose batch may be at fault.
        what: What was seen.
        begun: The iteration that the run has gone back to.
        numbers: The numbers of the data that is left out on trial.
        evidence: What was tried, and what came of it.
    """

    stage: str
    jump: int
    first: int
    what: str
    begun: int
    numbers: list[int] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)
