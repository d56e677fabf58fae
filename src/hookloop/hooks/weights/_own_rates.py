"""Give some parameters of an optimizer a learning rate of their own: a group, and its schedules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from torch.nn import Parameter
from torch.optim.lr_scheduler import CyclicLR, LRScheduler, OneCycleLR

from hookloop.engine.hook import Hook
from hookloop.errors import HookError
from hookloop.lr_schedule import Schedule

if TYPE_CHECKING:
    from hookloop.engine.run import Run

# What torch's schedulers keep for each group.
_LISTS = ("base_lrs", "_last_lr", "lr_lambdas", "min_lrs")


def give_rate(hook: Hook, run: Run, chosen: Mapping[str, Parameter], rate: float | None) -> None:
    """Put parameters into groups of their own with this rate; those in no optimizer into the only.

    Groups are made before a checkpoint is loaded, so a resumed run has the same ones. A group that
    holds nothing else keeps its place.

    Args:
        hook: The hook that asks for it, for messages.
        run: The run.
        chosen: The parameters by name.
        rate: Their learning rate; None leaves it as it is.
    """
    wanted = {id(parameter) for parameter in chosen.values()}
    for name, optimizer in run.optimizers.items():
        for number, group in enumerate(list(optimizer.param_groups)):
            own = [one for one in group["params"] if id(one) in wanted]
            wanted -= {id(one) for one in own}
            if not own or rate is None:
                continue
            if len(own) == len(group["params"]):
                _set_rate(hook, run, name, number, rate)
            else:
                ids = set(map(id, own))
                group["params"] = [one for one in group["params"] if id(one) not in ids]
                _add_group(hook, run, name, number, own, rate)
    missing = {name: one for name, one in chosen.items() if id(one) in wanted}
    if missing and len(run.optimizers) != 1:
        raise HookError(
            f"{type(hook).__name__}: '{next(iter(missing))}' is in none of the optimizers "
            f"{', '.join(run.optimizers)}: give it to one of them."
        )
    if missing:
        (name,) = run.optimizers
        default = cast("float", run.optimizer.defaults["lr"])
        _add_group(hook, run, name, 0, list(missing.values()), rate or float(default))


def _add_group(
    hook: Hook, run: Run, name: str, like: int, parameters: Sequence[Parameter], rate: float
) -> None:
    """Add a group with the settings of another one, to an optimizer and its schedule."""
    optimizer = run.optimizers[name]
    source = optimizer.param_groups[like]
    settings = {key: value for key, value in source.items() if key not in ("params", "name")}
    if "name" in source:  # torch expects a name in all groups or in none, and each once.
        settings["name"] = f"{source['name']}_{len(optimizer.param_groups)}"
    optimizer.add_param_group({**settings, "params": list(parameters)})
    for scheduler in _schedulers(hook, run, name):
        for key in _LISTS:
            if isinstance(values := getattr(scheduler, key, None), list) and values:
                values.append(values[like])
    _set_rate(hook, run, name, len(optimizer.param_groups) - 1, rate)


def _set_rate(hook: Hook, run: Run, name: str, number: int, rate: float) -> None:
    """Set the rate with which a group, and its schedule, begin."""
    group = run.optimizers[name].param_groups[number]
    # A schedule with a warm-up has already lowered the rate of the first iteration.
    start = float(group.get("initial_lr", group["lr"]))
    lowered = float(group["lr"]) / start if start else 1.0
    _assign(group, "lr", rate * lowered)
    if "initial_lr" in group:
        _assign(group, "initial_lr", rate)
    for scheduler in _schedulers(hook, run, name):
        for key, value in (("base_lrs", rate), ("_last_lr", rate * lowered)):
            if isinstance(values := getattr(scheduler, key, None), list) and values:
                values[number] = value
    if (schedule := run.schedules.get(name)) is not None:
        # A new one, which takes the scheduler as it is now for the one that was built.
        run.schedules[name] = Schedule(schedule.scheduler, schedule.every, schedule.metric)


def _assign(group: dict[str, object], key: str, value: float) -> None:
    """Set a number of a group, which may be a tensor that a captured graph uses."""
    number = group[key]
    if hasattr(number, "clone"):  # Not in place: other groups share the tensor.
        copy = number.clone()
        copy.fill_(value)
        group[key] = copy
    else:
        group[key] = value


def _schedulers(hook: Hook, run: Run, name: str) -> list[LRScheduler]:
    """Return the scheduler of an optimizer with those inside it; reject what has no base rates."""
    if (schedule := run.schedules.get(name)) is None:
        return []
    found: list[LRScheduler] = []
    waiting: list[object] = [schedule.scheduler]
    while waiting:
        one = waiting.pop()
        if not isinstance(one, LRScheduler) or isinstance(one, OneCycleLR | CyclicLR):
            raise HookError(
                f"{type(hook).__name__}: {type(one).__name__} takes no further groups of "
                "parameters: build the optimizer with groups of your own and leave out rates=, or "
                "use another schedule."
            )
        found.append(one)
        waiting += getattr(one, "_schedulers", [])
    return found
