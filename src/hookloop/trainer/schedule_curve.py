"""The curve of a schedule over a whole run, before it is trained, and what is wrong with it.

A schedule counts in steps, and how long a step is stands elsewhere. Numbers that were meant in
epochs and are counted in iterations let the learning rate vanish, without an error. So a copy of
the scheduler is stepped ahead, with an optimizer that has no parameters.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from torch.optim.lr_scheduler import (
    ChainedScheduler,
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    CyclicLR,
    LinearLR,
    LRScheduler,
    MultiStepLR,
    OneCycleLR,
    PolynomialLR,
    ReduceLROnPlateau,
    SequentialLR,
    StepLR,
)

from hookloop.engine.schedule_ahead import is_known, rates_ahead
from hookloop.every import count_of
from hookloop.hooks.schedules.step_schedules import StepSchedules
from hookloop.runs.policy import rule_of

if TYPE_CHECKING:
    from hookloop.engine.run import Run
    from hookloop.lr_schedule import Schedule

_log = logging.getLogger("hookloop")

VANISHED = 1e-6
"""The part of its highest rate below which a rate trains nothing."""

FAR = 5
"""How many times longer than the run a schedule is that was made for another unit."""

CUT = 1.5
"""How many times longer than the run one is that must be made to its end: a single cycle."""

_NUMBERS = ("step_size", "milestones", "T_max", "total_iters", "total_steps", "gamma")
"""Attributes of a scheduler whose numbers a user has given, in steps."""


@dataclass(frozen=True)
class Curve:
    """The learning rate over a run, as one schedule alone moves it.

    Attributes:
        name: The name of the schedule; ``default`` if there is one.
        kind: The class of the scheduler.
        unit: What a step follows: ``iters`` or ``epochs``, each ``count`` of them.
        count: How many of them.
        steps: Steps that the schedule makes in the run.
        points: The steps at which the rate is known, from 0, in order.
        rates: The rates there.
        problem: What is wrong with it; empty if nothing is.
    """

    name: str
    kind: str
    unit: str
    count: int
    steps: int
    points: Sequence[int]
    rates: Sequence[float]
    problem: str = ""

    def evenly(self, most: int = 40) -> list[float]:
        """Return rates at even distances from the first step to the last one that is known."""
        last = self.points[-1]
        wanted = [round(last * number / (most - 1)) for number in range(min(most, last + 1))]
        return [self.rates[bisect_right(self.points, step) - 1] for step in wanted]

    def at(self, step: int) -> str:
        """Say when a step is made."""
        what = "iteration" if self.unit == "iters" else "epoch"
        return f"{what} {step * self.count}"


def curves_of(run: Run, *, is_whole: bool = True) -> list[Curve]:
    """Return the curves of the schedules of a run that has not begun, as far as they are known.

    Nothing is said of one that waits for a metric, that a hook of its own steps, or that runs code
    of the user's, and nothing where the length of the run is unknown.

    Args:
        run: The run.
        is_whole: Whether it is trained to its end; a part of it may be shorter than its schedule.
    """
    if not any(type(hook) is StepSchedules for hook in run.hooks):
        return []
    made = (_curve_of(run, name, one, is_whole) for name, one in run.schedules.items())
    return [curve for curve in made if curve is not None]


def judge_schedules(run: Run, *, is_whole: bool = True) -> list[str]:
    """Return what is wrong with the schedules of a training that begins; see `curves_of`."""
    if run.progress.iter or not run.world.is_main:
        return []
    found = [curve.problem for curve in curves_of(run, is_whole=is_whole) if curve.problem]
    for name, schedule in run.schedules.items():
        kind = type(schedule.scheduler).__name__
        begin = f"The schedule{_which(name)} {kind}"
        if schedule.metric is not None:
            found += _judge_direction(begin, schedule.scheduler, schedule.metric)
            continue
        length = _length_in(run, schedule.every.unit)
        if is_whole and length is not None and length < schedule.every.count:
            found.append(
                f"{begin} steps every {schedule.every}, and the run ends after {length}: it is "
                "never stepped."
            )
    return found


def _which(name: str) -> str:
    return "" if name == "default" else f" '{name}'"


def _judge_direction(begin: str, scheduler: object, metric: str) -> list[str]:
    """Find a scheduler that lowers the rate when its metric gets better."""
    rule = rule_of(metric)
    wanted = {"greater": "max", "less": "min"}.get(rule or "")
    if not isinstance(scheduler, ReduceLROnPlateau) or wanted in (None, scheduler.mode):
        return []
    more = "more" if rule == "greater" else "less"
    return [
        f"{begin} has mode='{scheduler.mode}', and of '{metric}' {more} is better, by its name: it "
        f"lowers the learning rate while the metric improves. Write mode='{wanted}'."
    ]


def report_schedules(problems: Sequence[str]) -> None:
    """Report what `judge_schedules` has found."""
    for problem in problems:
        _log.warning("%s", problem)


def _curve_of(run: Run, name: str, schedule: Schedule, is_whole: bool) -> Curve | None:
    scheduler, length = schedule.scheduler, _length_in(run, schedule.every.unit)
    if schedule.metric is not None or length is None or not is_known(scheduler):
        return None
    count = int(schedule.every.count)
    steps = length // count
    if steps < 1:
        return None
    fails_after = _fails_after(scheduler)
    points, rates = rates_ahead(scheduler, min(steps, fails_after) if fails_after else steps)
    kind, unit = type(scheduler).__name__, str(schedule.every.unit)
    curve = Curve(name, kind, unit, count, steps, points, rates)
    found = _find_problem(curve, scheduler, run, is_whole)
    if not found:
        return curve
    problem = (
        f"The schedule{_which(name)} {kind} {found.what}. {_advice(curve, scheduler, run, found)}"
    )
    return replace(curve, problem=problem)


def _length_in(run: Run, unit: str) -> int | None:
    progress = run.progress
    total = progress.total_iters
    if unit == "iters":
        return total
    if progress.max_iters is None:
        return progress.max_epochs
    if total is None or not progress.epoch_iters:
        return None
    return total // progress.epoch_iters


# --- what is wrong --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Found:
    """What is wrong with a curve: a sentence after its name, and whether it is too long."""

    what: str
    is_long: bool = False


def _find_problem(curve: Curve, scheduler: LRScheduler, run: Run, is_whole: bool) -> _Found | None:
    """Return what is wrong with a curve."""
    for find in (_find_failure, _find_negative, _find_rise, _find_vanished, _find_over):
        if what := find(curve, scheduler):
            if find is _find_over and _is_in_cycles(curve, scheduler, run):
                return None
            return _Found(what)
    what = _find_long(curve, scheduler, run.accumulate) if is_whole else ""
    return _Found(what, is_long=True) if what else None


def _of_run(curve: Curve) -> str:
    return f"of {curve.steps * curve.count}"


def _find_failure(curve: Curve, scheduler: LRScheduler) -> str:
    last = _fails_after(scheduler)
    if not last or last >= curve.steps:
        return ""
    return (
        f"has total_steps={last}, and torch raises an error when it is stepped once more: after "
        f"{curve.at(last)} {_of_run(curve)}"
    )


def _find_negative(curve: Curve, scheduler: LRScheduler) -> str:
    # Not what rounding makes of a 0 at the end.
    below = (at for at, rate in enumerate(curve.rates) if rate < -VANISHED * max(curve.rates))
    first = next(below, None)
    if first is None:
        return ""
    return (
        f"makes the learning rate negative, {curve.rates[first]:.2g}, at "
        f"{curve.at(curve.points[first])} {_of_run(curve)}: updates raise the loss from there on"
    )


def _find_rise(curve: Curve, scheduler: LRScheduler) -> str:
    """Look for a schedule that is made to lower the rate, and raises it."""
    _, last = _last_part(scheduler)
    given = max(last.base_lrs)
    if isinstance(last, CosineAnnealingLR | CosineAnnealingWarmRestarts) and last.eta_min > given:
        return (
            f"has eta_min={last.eta_min:g}, which is above the learning rate {given:g}: it raises "
            "the rate, and does not lower it"
        )
    if isinstance(last, StepLR | MultiStepLR) and last.gamma > 1:
        return (
            f"has gamma={last.gamma:g}: it multiplies the learning rate with that, up to "
            f"{max(curve.rates):g}"
        )
    return ""


def _find_vanished(curve: Curve, scheduler: LRScheduler) -> str:
    """Look for a rate that stays below a millionth of the highest for a part of the run."""
    if isinstance(scheduler, CyclicLR | CosineAnnealingWarmRestarts):
        return ""
    highest = max(curve.rates)
    if highest == 0:
        return "keeps the learning rate at 0, and nothing is trained"
    gone = len(curve.rates)
    while gone and curve.rates[gone - 1] < VANISHED * highest:
        gone -= 1
    if gone == len(curve.rates):
        return ""
    step = curve.points[gone]
    lasts = curve.steps - step
    if lasts < 5 or lasts * 10 < curve.steps:  # It ends with the run.
        return ""
    return (
        f"brings the learning rate from {highest:g} to {curve.rates[gone]:.2g} by "
        f"{curve.at(step)} {_of_run(curve)}, and almost nothing is trained after that"
    )


def _find_over(curve: Curve, scheduler: LRScheduler) -> str:
    """Look for a schedule that has done all it does long before the end, on a low rate."""
    begin, last = _last_part(scheduler)
    length = curve.steps - begin
    if length < 10:
        return ""
    if isinstance(last, CosineAnnealingLR) and last.T_max * 3 <= length * 2:
        return (
            f"has T_max={last.T_max}: the learning rate is at its lowest at "
            f"{curve.at(begin + last.T_max)} {_of_run(curve)}, and rises again from there"
        )
    if isinstance(last, PolynomialLR) and last.total_iters * 3 <= length * 2:
        return (
            f"has total_iters={last.total_iters}: the learning rate is 0 from "
            f"{curve.at(begin + last.total_iters)} {_of_run(curve)} on"
        )
    if isinstance(last, LinearLR) and last.total_iters * 4 <= length:
        first, end = last.start_factor, last.end_factor
        if end < first:
            return (
                f"has total_iters={last.total_iters}: the learning rate has fallen from {first:g} "
                f"to {end:g} of what it is by {curve.at(begin + last.total_iters)} "
                f"{_of_run(curve)}, and stays there"
            )
    if isinstance(last, MultiStepLR):
        milestones = sorted(last.milestones)
        if milestones and milestones[-1] * 4 <= length and last.gamma < 1:
            listed = ", ".join(map(str, milestones))
            return (
                f"has the milestones {listed}: the last one is at "
                f"{curve.at(begin + milestones[-1])} {_of_run(curve)}, and the rate stays from "
                "there"
            )
    return ""


def _is_in_cycles(curve: Curve, scheduler: LRScheduler, run: Run) -> bool:
    """Return whether a cosine that rises again was given so that whole cycles fill the run."""
    _, last = _last_part(scheduler)
    if not isinstance(last, CosineAnnealingLR) or curve.steps % last.T_max:
        return False
    epoch = run.progress.epoch_iters
    if curve.unit == "epochs" or not epoch:
        return True
    return last.T_max % epoch == 0 and last.T_max != run.progress.max_epochs


def _find_long(curve: Curve, scheduler: LRScheduler, accumulate: int) -> str:
    """Look for a schedule that would go on far beyond the end of the run."""
    begin, last = _last_part(scheduler)
    unit = "iteration" if curve.unit == "iters" else "epoch"
    if isinstance(last, StepLR | MultiStepLR):
        first = last.step_size if isinstance(last, StepLR) else min(last.milestones, default=0)
        if curve.unit == "iters" or begin + first < FAR * curve.steps:  # A short trial of it.
            return ""
        name = "step_size=" if isinstance(last, StepLR) else "milestones from "
        return (
            f"has {name}{first}, and the run ends at {curve.at(curve.steps)}: the learning rate "
            f"would first change at {unit} {(begin + first) * curve.count}"
        )
    name = next(_lengths(last), "")
    length = begin + int(getattr(last, name)) if name else 0
    # Batches were counted, where an iteration takes several of them.
    is_in_batches = accumulate > 1 and abs(length / curve.steps / accumulate - 1) < 0.05
    far = CUT if isinstance(last, OneCycleLR) else FAR
    if not name or (length < far * curve.steps and not is_in_batches):
        return ""
    return (
        f"has {name}={getattr(last, name)}, and the run ends at "
        f"{curve.at(curve.steps)}: the schedule would end at {unit} {length * curve.count}"
    )


def _lengths(scheduler: object) -> Iterator[str]:
    kinds: Mapping[type, str] = {
        OneCycleLR: "total_steps",
        CosineAnnealingLR: "T_max",
        PolynomialLR: "total_iters",
        LinearLR: "total_iters",
    }
    yield from (name for kind, name in kinds.items() if isinstance(scheduler, kind))


def _last_part(scheduler: LRScheduler) -> tuple[int, LRScheduler]:
    """Return the last part of a sequence, and at which step it begins."""
    if isinstance(scheduler, SequentialLR) and scheduler._milestones:
        begin, inner = _last_part(scheduler._schedulers[-1])
        return scheduler._milestones[-1] + begin, inner
    if isinstance(scheduler, ChainedScheduler):
        return 0, scheduler._schedulers[-1]
    return 0, scheduler


def _fails_after(scheduler: object) -> int | None:
    return scheduler.total_steps if isinstance(scheduler, OneCycleLR) else None


def _advice(curve: Curve, scheduler: LRScheduler, run: Run, found: _Found) -> str:
    """Name the two ways to say what was meant."""
    _, last = _last_part(scheduler)
    given = next((name for name in _NUMBERS if hasattr(last, name)), "the schedule")
    by_iters, accumulate = curve.unit == "iters", run.accumulate
    unit = "iteration" if by_iters else "epoch"
    run_has = count_of(curve.steps * curve.count, unit)
    numbers = f"give it numbers for the {run_has} of this run"
    if by_iters and not found.is_long:
        size = run.progress.epoch_iters
        per = f", of which an epoch has {size}" if size else ""
        return (
            f"If {given} is meant in epochs, step it by epochs: Schedule({curve.kind}(...), "
            f"every='1 epoch'), or every: 1 epoch in a config. If in iterations, {numbers}{per}."
        )
    if not by_iters and found.is_long:
        return (
            f"If {given} is meant in iterations, step it by iterations: without every=. If in "
            f"epochs, {numbers}."
        )
    if found.is_long:
        counted = f" An iteration is an update of {accumulate} batches." if accumulate > 1 else ""
        return f"Train longer, or {numbers}.{counted}"
    return f"Train fewer epochs, or {numbers}."
