"""The curve of a schedule over a whole run, before it is trained, and what is wrong with it.

A schedule counts in steps, and how long a step is stands elsewhere. Numbers that were meant in
epochs and are counted in iterations let the learning rate vanish, without an error. So a copy of
the scheduler is stepped ahead, with an optimizer that has no parameters.
"""

from __future__ import annotations

import builtins
import copy
import dis
import logging
import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING

import torch
from torch.optim import Optimizer
from torch.optim.lr_scheduler import (
    ChainedScheduler,
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    CyclicLR,
    LambdaLR,
    LRScheduler,
    MultiStepLR,
    OneCycleLR,
    PolynomialLR,
    SequentialLR,
)

from hookloop.every import count_of
from hookloop.hooks.step_schedules import StepSchedules

if TYPE_CHECKING:
    from hookloop.core.run import Run
    from hookloop.lr_schedule import Schedule

_log = logging.getLogger("hookloop")

ALL = 1000
"""Steps that are all made; of a longer schedule, the rates at some points are computed."""

POINTS = 400
"""At how many points the rates of a longer schedule are computed."""

FIRST = 5000
"""Steps that are made of a longer schedule without a formula."""

VANISHED = 1e-6
"""The part of its highest rate below which a rate trains nothing."""

FAR = 5
"""How many times longer than the run a schedule is that was made for another unit."""

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
    if sum(hook.steps_schedules for hook in run.hooks) > 1:
        return []
    made = (_curve_of(run, name, one, is_whole) for name, one in run.schedules.items())
    return [curve for curve in made if curve is not None]


def judge_schedules(run: Run, *, is_whole: bool = True) -> list[str]:
    """Return what is wrong with the schedules of a training that begins; see `curves_of`."""
    if run.progress.iter or not run.world.is_main:
        return []
    return [curve.problem for curve in curves_of(run, is_whole=is_whole) if curve.problem]


def report_schedules(problems: Sequence[str]) -> None:
    """Report what `judge_schedules` has found."""
    for problem in problems:
        _log.warning("%s", problem)


def _curve_of(run: Run, name: str, schedule: Schedule, is_whole: bool) -> Curve | None:
    scheduler, length = schedule.scheduler, _length_in(run, schedule.every.unit)
    if schedule.metric is not None or length is None or not _is_known(scheduler):
        return None
    count = int(schedule.every.count)
    steps = length // count
    if steps < 1:
        return None
    fails_after = _fails_after(scheduler)
    points, rates = _rates(scheduler, min(steps, fails_after) if fails_after else steps)
    kind, unit = type(scheduler).__name__, str(schedule.every.unit)
    curve = Curve(name, kind, unit, count, steps, points, rates)
    found = _find_problem(curve, scheduler, is_whole)
    if not found:
        return curve
    which = "" if name == "default" else f" '{name}'"
    problem = f"The schedule{which} {kind} {found.what}. {_advice(curve, scheduler, run, found)}"
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


# --- the rates ------------------------------------------------------------------------------------


def _rates(scheduler: LRScheduler, steps: int) -> tuple[Sequence[int], Sequence[float]]:
    """Return the rates after some steps, of the group with the highest rate."""
    twin = _copy(scheduler)
    if steps <= ALL or not _has_formula(twin):
        every = range(min(steps, FIRST) + 1)
        return every, [_rate_of(twin), *(_step(twin) for _ in every[1:])]
    first, size = range(ALL // 4), max(1, steps // POINTS)
    points = sorted({*first, *range(0, steps + 1, size), steps})
    return points, [_jump(twin, point) for point in points]


def _step(twin: LRScheduler) -> float:
    twin.step()
    return _rate_of(twin)


def _rate_of(twin: LRScheduler) -> float:
    return max(float(group["lr"]) for group in twin.optimizer.param_groups)


def _jump(twin: LRScheduler, point: int) -> float:
    """Return the rate after some steps without making them."""
    if isinstance(twin, SequentialLR):
        inner = twin._schedulers
        begins = [0, *twin._milestones]
        which = bisect_right(twin._milestones, point)
        return _jump(inner[which], point - begins[which])
    twin.last_epoch = point
    formula = getattr(twin, "_get_closed_form_lr", None)
    if formula is not None:
        return max(map(float, formula()))
    twin.last_epoch = point - 1
    return _step(twin)


def _has_formula(scheduler: object) -> bool:
    if isinstance(scheduler, SequentialLR):
        return all(map(_has_formula, scheduler._schedulers))
    if isinstance(scheduler, OneCycleLR | CyclicLR | LambdaLR):  # It computes from the number.
        return True
    return hasattr(scheduler, "_get_closed_form_lr")


def _copy(scheduler: LRScheduler) -> LRScheduler:
    """Copy a scheduler without the optimizer that it drives."""
    optimizer = scheduler.optimizer
    dummy = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    dummy.param_groups = [
        {**{key: copy.copy(value) for key, value in group.items() if key != "params"}, "params": []}
        for group in optimizer.param_groups
    ]
    # A scheduler warns if its optimizer has not stepped yet.
    stepped = _Stepped()
    dummy.__dict__ |= {"defaults": dict(optimizer.defaults), "step": stepped, "_opt_called": True}
    return copy.deepcopy(scheduler, {id(optimizer): dummy, id(stepped): stepped})


class _Stepped:
    """Stands for the ``step`` of an optimizer, as a scheduler has wrapped it."""

    _wrapped_by_lr_sched = True

    def __call__(self) -> None:
        return


# --- which schedulers are known -------------------------------------------------------------------


def _is_known(scheduler: object) -> bool:
    """Return whether stepping a copy runs torch's own code only, or functions that only compute."""
    if not isinstance(scheduler, LRScheduler | ChainedScheduler):
        return False
    if not type(scheduler).__module__.startswith("torch.optim."):
        return False
    if not isinstance(getattr(scheduler, "optimizer", None), Optimizer):
        return False
    functions = [*getattr(scheduler, "lr_lambdas", ())]
    if (shape := getattr(scheduler, "_scale_fn_custom", None)) is not None:
        functions.append(shape)
    inner = getattr(scheduler, "_schedulers", ())
    return all(map(_only_computes, functions)) and all(map(_is_known, inner))


_COMPUTING = frozenset({"min", "max", "abs", "int", "float", "round", "pow", "sum", "len", "bool"})
"""Built-in functions that change nothing."""

_HELD = (int, float, list, tuple)
"""What a function may have from the function that it was written in."""


def _only_computes(function: object) -> bool:
    """Return whether a function can be called ahead of time: it changes and draws nothing."""
    if not isinstance(function, FunctionType) or function.__code__.co_cellvars:
        return False
    names = function.__code__.co_names
    has_math = any(function.__globals__.get(name) is math for name in names)
    for name in names:
        value = function.__globals__.get(name, getattr(builtins, name, None))
        is_known = value is math or isinstance(value, int | float) or _is_pure(value)
        if not (is_known or (has_math and value is None and hasattr(math, name))):
            return False
    held = (cell.cell_contents for cell in function.__closure__ or ())
    return _stores_nothing(function) and all(isinstance(one, _HELD) for one in held)


def _is_pure(value: object) -> bool:
    """Return whether a value is a built-in function that only computes."""
    if not isinstance(value, BuiltinFunctionType | type):
        return False
    is_of_math = value.__module__ == "math"
    return is_of_math or (value.__module__ == "builtins" and value.__name__ in _COMPUTING)


def _stores_nothing(function: FunctionType) -> bool:
    forbidden = ("STORE_GLOBAL", "STORE_DEREF", "STORE_ATTR", "STORE_SUBSCR", "DELETE_", "YIELD")
    return not any(one.opname.startswith(forbidden) for one in dis.get_instructions(function))


# --- what is wrong --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Found:
    """What is wrong with a curve: a sentence after its name, and whether it is too long."""

    what: str
    is_long: bool = False


def _find_problem(curve: Curve, scheduler: LRScheduler, is_whole: bool) -> _Found | None:
    """Return what is wrong with a curve."""
    for find in (_find_failure, _find_vanished, _find_over):
        if what := find(curve, scheduler):
            return _Found(what)
    what = _find_long(curve, scheduler) if is_whole else ""
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


def _find_vanished(curve: Curve, scheduler: LRScheduler) -> str:
    """Look for a rate that stays below a millionth of the highest for a part of the run."""
    if isinstance(scheduler, CyclicLR | CosineAnnealingWarmRestarts):
        return ""
    highest = max(curve.rates)
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


def _find_long(curve: Curve, scheduler: LRScheduler) -> str:
    """Look for a schedule that would go on far beyond the end of the run."""
    begin, last = _last_part(scheduler)
    name = next((name for name in _lengths(last) if hasattr(last, name)), None)
    length = begin + int(getattr(last, name)) if name is not None else 0
    if length < FAR * curve.steps:
        return ""
    unit = "iteration" if curve.unit == "iters" else "epoch"
    return (
        f"has {name}={getattr(last, str(name))}, and the run ends at "
        f"{curve.at(curve.steps)}: the schedule would end at {unit} {length * curve.count}"
    )


def _lengths(scheduler: object) -> Iterator[str]:
    kinds: Mapping[type, str] = {
        OneCycleLR: "total_steps",
        CosineAnnealingLR: "T_max",
        PolynomialLR: "total_iters",
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
