"""Step a copy of a scheduler ahead, to say what the learning rate will be."""

from __future__ import annotations

import builtins
import copy
import dis
import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from types import BuiltinFunctionType, FunctionType

import torch
from torch.optim import Optimizer
from torch.optim.lr_scheduler import (
    ChainedScheduler,
    CyclicLR,
    LambdaLR,
    LRScheduler,
    OneCycleLR,
    SequentialLR,
)

ALL = 1000
"""Steps that are all made; of a longer schedule, the rates at some points are computed."""

POINTS = 400
"""At how many points the rates of a longer schedule are computed."""

FIRST = 5000
"""Steps that are made of a longer schedule without a formula."""

# --- the rates ------------------------------------------------------------------------------------


def rates_ahead(
    scheduler: LRScheduler, steps: int, group: int | None = None
) -> tuple[Sequence[int], Sequence[float]]:
    """Return at which steps from now the rates are known, and the rates there.

    Args:
        scheduler: One that `is_known`; it does not change.
        steps: How many steps it has left.
        group: The parameter group; by default the rate is the highest of all.
    """
    twin = _copy(scheduler)

    def chosen(rates: Iterable[float]) -> float:
        every = [float(rate) for rate in rates]
        return max(every) if group is None else every[group]

    def now() -> float:
        return chosen(one["lr"] for one in twin.optimizer.param_groups)

    def step() -> float:
        twin.step()
        return now()

    if steps <= ALL or not _has_formula(twin):
        near = range(min(steps, FIRST) + 1)
        return near, [now(), *(step() for _ in near[1:])]
    begin, size = twin.last_epoch, max(1, steps // POINTS)
    points = sorted({*range(ALL // 4), *range(0, steps + 1, size), steps})
    return points, [chosen(_jump(twin, begin + point)) for point in points]


def _jump(twin: LRScheduler, point: int) -> Iterable[float]:
    """Return the rates after some steps without making them."""
    if isinstance(twin, SequentialLR):
        inner = twin._schedulers
        begins = [0, *twin._milestones]
        which = bisect_right(twin._milestones, point)
        return _jump(inner[which], point - begins[which])
    twin.last_epoch = point
    formula = getattr(twin, "_get_closed_form_lr", None)
    if formula is not None:
        rates: Iterable[float] = formula()
        return rates
    twin.last_epoch = point - 1
    twin.step()
    return [float(group["lr"]) for group in twin.optimizer.param_groups]


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


def is_known(scheduler: object) -> bool:
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
    return all(map(_only_computes, functions)) and all(map(is_known, inner))


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
