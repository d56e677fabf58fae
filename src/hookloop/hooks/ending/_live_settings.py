"""Settings that can be changed while a run is trained: what their keys mean, and how they last."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import getattr_static
from typing import TYPE_CHECKING, cast

from hookloop.engine.hook import Hook
from hookloop.engine.schedule_ahead import is_known, rates_ahead
from hookloop.errors import HookError, nearest
from hookloop.hooks.schedules.schedule_parameter import ScheduleParameter
from hookloop.runs.asking import is_finite

if TYPE_CHECKING:
    import torch

    from hookloop.engine.run import Run

Group = dict[str, object]

BASE = "base_lr"
"""Names the rate from which a schedule computes the current one: its highest, or its first."""

LIMITS = {"max_epochs": "epoch", "max_iters": "iter"}
"""The limits of a run, each with the counter that it ends."""

CURVE = ("initial_lr", "max_lr", "min_lr")
"""Entries of a parameter group from which schedules of torch compute the learning rate."""

OF_SCHEDULES = (*CURVE, "max_momentum", "base_momentum")
"""Entries that belong to a schedule and not to the optimizer."""


@dataclass(frozen=True)
class Setting:
    """A change that can be made.

    Attributes:
        key: What it is called.
        old: Its value now.
        new: Its value afterwards.
        apply: Makes the change.
        outlook: Says what becomes of it, once it is made: a schedule moves the rate on.
    """

    key: str
    old: float | None
    new: float
    apply: Callable[[], None]
    outlook: Callable[[], str] = str


def find_setting(run: Run, key: str, value: float) -> Setting:
    """Return how to change a setting of a run.

    Args:
        run: The run.
        key: ``optimizer.lr``, ``optimizer.base_lr``, ``optimizers.NAME.lr``,
            ``optimizer.groups.0.lr``,
            ``hooks.NAME.ATTRIBUTE``, ``max_epochs`` or ``max_iters``.
        value: The new value.

    Raises:
        HookError: If there is no such setting, or if the change would not last.
    """
    kind, _, rest = key.partition(".")
    if key in LIMITS:
        return _limit(run, key, value)
    if kind == "hooks" and "." in rest:
        return _attribute(run, key, value)
    if kind == "optimizer" and rest:
        if len(run.optimizers) != 1:
            names = ", ".join(f"optimizers.{name}" for name in run.optimizers) or "none"
            raise HookError(f"'{key}' needs a single optimizer; there are: {names}.")
        return _of_optimizer(run, next(iter(run.optimizers)), key, rest, value)
    if kind == "optimizers" and "." in rest:
        name, _, rest = rest.partition(".")
        if name not in run.optimizers:
            raise HookError(
                f"'{key}': there is no optimizer '{name}'.{nearest(name, run.optimizers)} "
                f"There are: {', '.join(run.optimizers)}."
            )
        return _of_optimizer(run, name, key, rest, value)
    raise HookError(
        f"'{key}' cannot be changed in a live run. What can: optimizer.lr and other numbers of "
        "optimizers, hooks.NAME.ATTRIBUTE, max_epochs, max_iters."
    )


# --- limits and hooks -----------------------------------------------------------------------------


def _limit(run: Run, key: str, value: float) -> Setting:
    done = getattr(run.progress, LIMITS[key])
    if value != int(value) or value <= done:
        raise HookError(f"'{key}' must be a whole number above {done}, which is done.")
    new = int(value)
    return Setting(key, getattr(run.progress, key), new, partial(setattr, run.progress, key, new))


def _attribute(run: Run, key: str, value: float) -> Setting:
    name, _, attribute = key.removeprefix("hooks.").rpartition(".")
    names = [hook.name for hook in run.hooks]
    if name not in names:
        raise HookError(
            f"'{key}': there is no hook '{name}'.{nearest(name, names)} "
            f"There are: {', '.join(names)}."
        )
    hook = run.hooks[names.index(name)]
    if attribute.startswith("_") or hasattr(Hook, attribute):
        raise HookError(f"'{key}' is fixed when a run begins.")
    numbers = [one for one in dir(hook) if one[0] != "_" and not hasattr(Hook, one)]
    # Without running properties, which are the user's code.
    numbers = [one for one in numbers if is_finite(getattr_static(hook, one, None))]
    if attribute not in numbers:
        raise HookError(
            f"'{key}' is not a number of the hook '{name}'.{nearest(attribute, numbers)} "
            f"Its numbers are: {', '.join(numbers) or 'none'}."
        )
    old = cast("float", getattr(hook, attribute))
    if isinstance(old, int) and value != int(value):
        raise HookError(f"'{key}' must be a whole number, as it is now: {old}.")
    new = int(value) if isinstance(old, int) else float(value)
    return Setting(key, old, new, partial(setattr, hook, attribute, new))


# --- optimizers -----------------------------------------------------------------------------------


def _of_optimizer(run: Run, name: str, key: str, rest: str, value: float) -> Setting:
    groups: Sequence[Group] = run.optimizers[name].param_groups
    entry, prefix = rest, key.removesuffix(rest)
    if rest.startswith("groups."):
        _, number, entry = (*rest.split(".", 2), "", "")[:3]
        if not number.isdecimal() or int(number) >= len(groups):
            raise HookError(f"'{key}': there are {len(groups)} parameter groups, from 0.")
        groups, prefix = [groups[int(number)]], key.removesuffix(entry)
    if entry == BASE:
        return _base_rate(run, name, groups, key, value)
    numbers = [one for one in groups[0] if one not in OF_SCHEDULES and _is_number(groups[0][one])]
    if entry not in numbers or not all(_is_number(group.get(entry)) for group in groups):
        raise HookError(
            f"'{key}' is not a number of the optimizer.{nearest(entry, numbers)} "
            f"Its numbers are: {', '.join(numbers)}."
        )
    olds = [float(cast("float", group[entry])) for group in groups]
    if len(set(olds)) > 1:
        raise HookError(
            f"'{key}': the parameter groups have different values ({', '.join(map(str, olds))}). "
            f"Change one of them: {key.removesuffix(entry)}groups.0.{entry}."
        )
    if value < 0:
        raise HookError(f"'{key}' must not be negative.")
    _reject_driven(run, name, key, entry)
    apply = partial(_set_in_groups, groups, entry, value)
    outlook: Callable[[], str] = str
    if entry == "lr" and name in run.schedules:
        if olds[0] == 0:
            raise HookError(
                f"'{key}' is 0 at this place of its schedule, so that there is no factor to scale "
                f"the rest by: set {prefix}{BASE}, or ask again later."
            )
        scheduler = _scheduler(run, name, key)
        apply = partial(_rescale, run.optimizers[name], groups, scheduler, "lr", value)
        outlook = partial(_outlook, run, name, groups[0], prefix)
    return Setting(key, olds[0], value, apply, outlook)


def _base_rate(run: Run, name: str, groups: Sequence[Group], key: str, value: float) -> Setting:
    """Return how to change the rate from which a schedule computes the current one."""
    scheduler = _scheduler(run, name, key) if name in run.schedules else None
    entry = next((one for one in ("max_lr", "initial_lr") if one in groups[0]), None)
    if scheduler is None or entry is None or run.schedules[name].metric is not None:
        raise HookError(
            f"'{key}': no schedule computes the rate from a base. Set "
            f"{key.removesuffix(BASE)}lr, which is what the optimizer uses."
        )
    olds = {float(cast("float", group[entry])) for group in groups}
    if len(olds) > 1:
        raise HookError(
            f"'{key}': the parameter groups have different values "
            f"({', '.join(map(str, sorted(olds)))}). Change one of them: "
            f"{key.removesuffix(BASE)}groups.0.{BASE}."
        )
    (old,) = olds
    if value <= 0 or old == 0:
        raise HookError(f"'{key}' must be above 0, to scale the schedule by; it is {old:g} now.")
    apply = partial(_rescale, run.optimizers[name], groups, scheduler, entry, value)
    prefix = key.removesuffix(BASE)
    return Setting(key, old, value, apply, partial(_outlook, run, name, groups[0], prefix))


def _outlook(run: Run, name: str, group: Group, prefix: str) -> str:
    """Say what the schedule makes of a learning rate from now on, and how to say the other way."""
    schedule, now = run.schedules[name], float(cast("float", group["lr"]))
    kind = type(schedule.scheduler).__name__
    if schedule.metric is not None:
        return f"{prefix}lr is {now:.3g} until {kind} lowers it"
    base = next((one for one in ("max_lr", "initial_lr") if one in group), None)
    other = (
        f"; {prefix}lr sets what it is now, {prefix}{BASE} what the schedule scales, which is "
        f"{float(cast('float', group[base])):.3g}"
        if base is not None
        else ""
    )
    ahead = _ahead(run, name, group)
    if ahead is None:
        return f"{prefix}lr is {now:.3g} now, and {kind} scales it from here{other}"
    return f"{prefix}lr is {now:.3g} now, and {kind} moves it: {ahead}{other}"


def _ahead(run: Run, name: str, group: Group) -> str | None:
    """Say where a rate is highest from now on, and what it is at the end; None if unknown."""
    schedule, progress = run.schedules[name], run.progress
    total, unit = progress.total_iters, schedule.every.unit
    if total is None or not is_known(schedule.scheduler):
        return None
    size = 1 if unit == "iters" else progress.epoch_iters
    done = progress.iter if unit == "iters" else progress.epoch
    count = int(schedule.every.count)
    steps = (total // size) // count - done // count if size else 0
    if steps < 1:
        return None
    groups = run.optimizers[name].param_groups
    index = next(number for number, one in enumerate(groups) if one is group)
    points, rates = rates_ahead(schedule.scheduler, steps, index)
    top = max(range(len(rates)), key=rates.__getitem__)
    word = "iteration" if unit == "iters" else "epoch"
    at, end = ((done // count + points[one]) * count for one in (top, -1))
    highest = f"highest {rates[top]:.3g} at {word} {at}, " if top else ""
    return f"{highest}{rates[-1]:.3g} at {word} {end}"


def _reject_driven(run: Run, name: str, key: str, entry: str) -> None:
    """Reject a setting that a hook or a schedule sets at each step: the change would not last."""
    for hook in run.hooks:
        if isinstance(hook, ScheduleParameter) and hook.parameter.partition(".")[0] == entry:
            raise HookError(
                f"'{key}' is set by the hook '{hook.name}' in each iteration. Change its numbers: "
                f"hooks.{hook.name}.end."
            )
    scheduler = run.schedules[name].scheduler if name in run.schedules else None
    if entry == "momentum" and getattr(scheduler, "cycle_momentum", False):
        raise HookError(f"'{key}' is set by {type(scheduler).__name__} at each step.")


def _scheduler(run: Run, name: str, key: str) -> torch.optim.lr_scheduler.LRScheduler:
    """Return the schedule of an optimizer, if its whole curve can be scaled."""
    scheduler = run.schedules[name].scheduler
    if not type(scheduler).__module__.startswith("torch.optim."):
        raise HookError(
            f"'{key}' is set by {type(scheduler).__name__} at each step, which is not a scheduler "
            "of torch: how to scale its curve is not known."
        )
    return scheduler


def _rescale(
    optimizer: torch.optim.Optimizer,
    groups: Sequence[Group],
    scheduler: object,
    entry: str,
    value: float,
) -> None:
    """Set the current or the base rate, and scale all of the curve by the same factor."""
    factors = {
        index: value / float(cast("float", group[entry]))
        for index, group in enumerate(optimizer.param_groups)
        if any(group is one for one in groups)
    }
    for index, factor in factors.items():
        group = optimizer.param_groups[index]
        for one in ("lr", *CURVE):
            if one in group and one != entry:
                _set_in_groups([group], one, float(group[one]) * factor)
    _set_in_groups(groups, entry, value)
    _scale_curve(scheduler, factors, is_whole=len(factors) == len(optimizer.param_groups))


def _scale_curve(scheduler: object, factors: Mapping[int, float], *, is_whole: bool) -> None:
    for inner in getattr(scheduler, "_schedulers", ()):
        _scale_curve(inner, factors, is_whole=is_whole)
    for name in ("base_lrs", "max_lrs"):
        if isinstance(rates := getattr(scheduler, name, None), list):
            scaled = [rate * factors.get(index, 1.0) for index, rate in enumerate(rates)]
            setattr(scheduler, name, scaled)
    lowest = getattr(scheduler, "eta_min", None)
    if is_whole and isinstance(lowest, int | float):  # One for all groups.
        scheduler.eta_min = lowest * next(iter(factors.values()))  # type: ignore[attr-defined]


def _set_in_groups(groups: Sequence[Group], entry: str, value: float) -> None:
    from torch import Tensor

    for group in groups:
        if isinstance(old := group[entry], Tensor):
            old.fill_(value)  # A captured graph reads this tensor.
        else:
            group[entry] = value


def _is_number(value: object) -> bool:
    from torch import Tensor

    return is_finite(value) or (isinstance(value, Tensor) and value.numel() == 1)
