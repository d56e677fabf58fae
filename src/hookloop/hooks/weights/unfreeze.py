"""`Unfreeze`: train more and more of a model, each part from its moment on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, cast

from torch.nn import Parameter
from torch.optim.lr_scheduler import CyclicLR, LRScheduler, OneCycleLR

from hookloop.engine.hook import Hook
from hookloop.errors import HookError, nearest
from hookloop.every import Every
from hookloop.hooks._intervals import moment_of
from hookloop.hooks.weights.freeze_parameters import FrozenNorms, find_matching
from hookloop.lr_schedule import Schedule

if TYPE_CHECKING:
    from hookloop.engine.run import Run
    from hookloop.requests import Rewind

Patterns = str | Sequence[str]


class Unfreeze(Hook):
    """Thaw frozen parameters step by step, with learning rates of their own.

    A parameter thaws at the first step that matches it. Parameters that no optimizer has are added
    to the optimizer; there must be only one then. With ``rates`` the parameters of a step become
    groups of the optimizer when the run begins, so a schedule acts on them too, and a resume finds
    the same groups. Until they thaw, the optimizer skips them, as they have no gradients.

    Args:
        steps: What thaws when: ``{"2 epochs": "layer4.*", "4 epochs": "*"}``; a moment in completed
            iterations or epochs, and names or ``fnmatch`` patterns.
        rates: Learning rate of what thaws: one number, or one for each step,
            ``{"2 epochs": 1e-4}``. With a schedule it is the rate that the schedule starts from.
        first: What trains from the start, names or patterns; everything else is frozen until its
            step, or for the whole run. By default what the model itself has frozen
            (``requires_grad_(False)``) is what thaws.
        norms: ``"eval"`` holds batch and instance norms in evaluation mode until they thaw.

    Example:
        >>> hook = Unfreeze({"2 epochs": "layer4.*", "4 epochs": "*"}, rates=1e-4, first="fc.*")
        >>> hook.rates
        {'2 epochs': 0.0001, '4 epochs': 0.0001}
    """

    takes_part_in_training = True
    changes_what_trains = True

    def __init__(
        self,
        steps: Mapping[str | int, Patterns],
        rates: float | Mapping[str | int, float] | None = None,
        *,
        first: Patterns | None = None,
        norms: Literal["train", "eval"] = "train",
    ) -> None:
        if not steps:
            raise HookError("Unfreeze: steps is empty: write {'2 epochs': 'layer4.*'}.")
        self.steps = {key: _listed(patterns) for key, patterns in steps.items()}
        self.first = None if first is None else _listed(first)
        self.rates = _rates_of(rates, self.steps)
        self._moments = {key: moment_of(self, "steps", key) for key in self.steps}
        self._norms = FrozenNorms.of(self, norms)
        # The parameters of each step, and those that stay frozen; found when the run begins.
        self._waiting: list[tuple[Every, list[Parameter]]] = []
        self._parts: dict[str | int, dict[str, Parameter]] = {}
        self._never: list[Parameter] = []

    def before_run(self, run: Run) -> None:
        if self._parts:  # A second training with the same model continues.
            return
        self._parts = self._divide(run)
        for key, parameters in self._parts.items():
            give_rate(self, run, parameters, self.rates.get(key))
            for parameter in parameters.values():
                # Many ranks average the gradients of what trains when they are connected.
                parameter.requires_grad_(True)

    def before_train(self, run: Run) -> None:
        self._waiting = [
            (self._moments[key], list(parameters.values()))
            for key, parameters in self._parts.items()
        ]
        for parameter in self._never:
            _freeze(parameter)
        for _, parameters in self._waiting:
            for parameter in parameters:
                _freeze(parameter)
        self._thaw_due(run)

    def after_rewind(self, run: Run, rewind: Rewind) -> None:
        self.before_train(run)  # What has thawed since the checkpoint is frozen again.

    def after_train_iter(self, run: Run) -> None:
        if self._waiting:
            self._thaw_due(run)

    def after_train_epoch(self, run: Run) -> None:
        if self._waiting:
            self._thaw_due(run)

    def after_run(self, run: Run) -> None:
        self._norms.release()
        # What has not thawed is as the user had it: frozen, unless `first` froze it here.
        if self.first is not None:
            kept = [*self._never, *(one for _, listed in self._waiting for one in listed)]
            for parameter in kept:
                parameter.requires_grad_(True)
        self._waiting = []

    def _thaw_due(self, run: Run) -> None:
        due = [step for step in self._waiting if step[0].reached(run.progress)]
        self._waiting = [step for step in self._waiting if step not in due]
        for _, parameters in due:
            for parameter in parameters:
                parameter.requires_grad_(True)
        self._norms.find(run.model)

    def _divide(self, run: Run) -> dict[str | int, dict[str, Parameter]]:
        """Return the parameters that thaw at each step; each belongs to the first that fits."""
        named = dict(run.model.named_parameters())
        if self.first is None:
            left = {name: one for name, one in named.items() if not one.requires_grad}
        else:
            trained = find_matching(self, named, self.first)
            left = {name: one for name, one in named.items() if name not in trained}
        if not left:
            raise HookError(
                "Unfreeze: nothing is frozen: give first=, what trains from the start, such as "
                "first='head.*', or freeze the rest with requires_grad_(False)."
            )
        parts: dict[str | int, dict[str, Parameter]] = {}
        for key, patterns in self.steps.items():
            matching = find_matching(self, named, patterns)
            parts[key] = {name: one for name, one in matching.items() if name in left}
            if not parts[key]:
                raise HookError(
                    f"Unfreeze: the step '{key}' thaws nothing: what {', '.join(patterns)} matches "
                    "is not frozen, or thaws earlier."
                )
            left = {name: one for name, one in left.items() if name not in parts[key]}
        self._never = list(left.values())
        return parts


def _freeze(parameter: Parameter) -> None:
    parameter.requires_grad_(False)
    parameter.grad = None  # With a gradient of zeros, momentum and weight decay would act.


def _listed(patterns: Patterns) -> tuple[str, ...]:
    return (patterns,) if isinstance(patterns, str) else tuple(patterns)


def _rates_of(
    rates: float | Mapping[str | int, float] | None, steps: Mapping[str | int, object]
) -> dict[str | int, float]:
    if rates is None:
        return {}
    given = dict(rates) if isinstance(rates, Mapping) else dict.fromkeys(steps, rates)
    for key, rate in given.items():
        if key not in steps:
            known = [str(step) for step in steps]
            raise HookError(
                f"Unfreeze: rates names '{key}', which is none of the steps {', '.join(known)}."
                f"{nearest(str(key), known)}"
            )
        if not rate > 0:  # Written so that NaN is rejected too.
            raise HookError(f"Unfreeze: the rate of '{key}' must be positive, not {rate}.")
    return given


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
