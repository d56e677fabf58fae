"""Select the parameters that an optimizer gets, and their groups."""

from __future__ import annotations

import re
from collections.abc import Collection
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from hookloop.config.parts.optimizers import Group, OptimizerPart
from hookloop.config.tree import Config, Key, spell
from hookloop.errors import ConfigError, ModelError, Problem, nearest

if TYPE_CHECKING:
    from torch import nn
    from torch.nn import Parameter

    Named = dict[str, Parameter]

_LAYER = re.compile(r"(\d+)(?=\.)")
"""The number of a layer in a parameter's name: ``encoder.layer.3.norm.weight``, ``block3.bias``."""


def select_parameters(
    model: nn.Module, optimizer: OptimizerPart, config: Config
) -> list[dict[str, object]]:
    """Return an optimizer's parameter groups: those of the config in order, then the rest.

    The first group that matches a parameter gets it. Frozen parameters are left out.

    Raises:
        ConfigError: If a pattern matches nothing, as a misspelled one does.
    """
    everything = dict(model.named_parameters())
    if not any(parameter.requires_grad for parameter in everything.values()):
        raise ModelError(
            "model= has no trainable parameters: every requires_grad is False.", argument="model"
        )
    free = everything
    if optimizer.params is not None:
        key = (*optimizer.part.key, "params")
        free = _matching(everything, optimizer.params, key, config)
    norms = _of_norms(model)
    chosen: list[dict[str, object]] = []
    for group in optimizer.groups:
        # Among all parameters: a pattern whose matches an earlier group has taken is not
        # misspelled.
        matching = _members(group, everything, norms, config)
        selected = {name: free[name] for name in matching if name in free}
        if not selected:
            _reject_empty(group, matching, config)
        free = {name: parameter for name, parameter in free.items() if name not in selected}
        # Frozen ones are removed only now: a pattern that matches nothing else is not a mistake.
        if group.decay is None:
            chosen.append({"params": _trainable(selected), **group.options})
        else:
            chosen += _decaying(selected, group, group.decay, _rate(optimizer, group, config))
    chosen.append({"params": _trainable(free)})
    return [group for group in chosen if group["params"]]


def _decaying(selected: Named, group: Group, decay: float, rate: float) -> list[dict[str, object]]:
    """Return a group for each layer: the last has the full rate, each one before it a share."""
    layers: dict[int, Named] = {}
    numbers = {name: int(found[1]) for name in selected if (found := _LAYER.search(name))}
    # What has no number is before the first layer, such as an embedding, or after the last.
    number = min(numbers.values(), default=0) - 1
    highest = max(numbers.values(), default=0)
    for name, parameter in selected.items():
        if name in numbers:
            number = highest
        layers.setdefault(numbers.get(name, number), {})[name] = parameter
    named = str(group.options.get("name") or "layer")
    return [
        {
            "params": _trainable(layers[number]),
            **group.options,
            "lr": rate * decay**place,
            "name": f"{named}_{number}" if number in numbers.values() else f"{named}_first",
        }
        for place, number in enumerate(sorted(layers, reverse=True))
    ]


def _rate(optimizer: OptimizerPart, group: Group, config: Config) -> float:
    """Return the rate that decays from layer to layer."""
    rate = group.options.get("lr", optimizer.part.arguments.get("lr"))
    if isinstance(rate, float | int):
        return float(rate)
    key = (*group.key, "decay")
    message = f"{spell(key)}: there is no rate to decay: give lr, of the optimizer or of the group."
    raise ConfigError([Problem(message, config.where(key))])


def _members(group: Group, everything: Named, norms: Collection[str], config: Config) -> list[str]:
    names = set(norms) if group.norms else set()
    if group.match:
        names |= set(_matching(everything, group.match, (*group.key, "match"), config))
    return [name for name in everything if name in names]


def _matching(everything: Named, patterns: list[str], key: Key, config: Config) -> Named:
    found: set[str] = set()
    for pattern in patterns:
        # Not `fnmatch`, which ignores case on Windows.
        names = [name for name in everything if fnmatchcase(name, pattern)]
        if not names:
            hint = nearest(pattern, everything) or f" It has {_some(everything)}."
            message = f"{spell(key)}: '{pattern}' matches no parameter of the model.{hint}"
            raise ConfigError([Problem(message, config.where(key))])
        found.update(names)
    return {name: parameter for name, parameter in everything.items() if name in found}


def _reject_empty(group: Group, names: list[str], config: Config) -> None:
    """Reject a group that gets nothing, unless the model has no norms at all."""
    if not names:  # `norms: true` is a rule for any model: not every model has norms.
        return
    message = (
        f"{spell(group.key)}: every parameter that it matches ({_some(names)}) is in an earlier "
        "group, or not among this optimizer's params: the first match wins, so put the narrower "
        "group first."
    )
    raise ConfigError([Problem(message, config.where(group.key))])


def _some(names: Collection[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:6]) + (f" and {len(listed) - 6} more" if len(listed) > 6 else "")


def _trainable(parameters: Named) -> list[Parameter]:
    return [parameter for parameter in parameters.values() if parameter.requires_grad]


def _of_norms(model: nn.Module) -> set[str]:
    """Return the names of the parameters of normalization layers: classes with Norm in the name."""
    return {
        f"{prefix}.{name}" if prefix else name
        for prefix, module in model.named_modules()
        # By name, because the normalization layers of torch and others have no common base class.
        if "Norm" in type(module).__name__
        for name, _ in module.named_parameters(recurse=False)
    }
