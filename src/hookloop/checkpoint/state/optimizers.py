"""The state of an optimizer by names of parameters, or by their numbers.

torch numbers the parameters of an optimizer. A checkpoint of shards names them instead, as torch's
own checkpoints of shards do. Loading takes either form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from torch import Tensor
from torch.nn import Module
from torch.optim import Optimizer

from hookloop.checkpoint.shards.dtensors import spread
from hookloop.errors import CheckpointError, nearest

Groups = list[dict[str, object]]


def parameter_names(model: Module, optimizer: Optimizer) -> list[list[str]]:
    """Return the names of an optimizer's parameters, group by group.

    A tied weight has the first of its names. A parameter that is not in the model is named after
    its place: ``optimizer.<group>.<index>``.
    """
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return [
        [
            names.get(id(parameter), f"optimizer.{number}.{index}")
            for index, parameter in enumerate(group["params"])
        ]
        for number, group in enumerate(optimizer.param_groups)
    ]


def optimizer_state(model: Module, optimizer: Optimizer) -> dict[str, object]:
    """Return the state of an optimizer with names instead of numbers.

    >>> import torch
    >>> model = torch.nn.Linear(1, 1)
    >>> state = optimizer_state(model, torch.optim.SGD(model.parameters(), lr=0.1))
    >>> state["param_groups"][0]["params"]
    ['weight', 'bias']
    """
    state = optimizer.state_dict()
    if not _has_own_form(optimizer):
        return state
    names = parameter_names(model, optimizer)
    by_number = dict(enumerate(name for group in names for name in group))
    return {
        **state,
        "state": {by_number.get(key, key): kept for key, kept in state["state"].items()},
        "param_groups": [
            {**group, "params": own}
            for group, own in zip(state["param_groups"], names, strict=True)
        ],
    }


def load_optimizer_state(model: Module, optimizer: Optimizer, state: Mapping[str, object]) -> None:
    """Restore an optimizer from a state of either form, also one of whole tensors into shards.

    Raises:
        CheckpointError: If the parameters are not those of the optimizer.
    """
    optimizer.load_state_dict(numbered_state(model, optimizer, state))


def numbered_state(
    model: Module, optimizer: Optimizer, state: Mapping[str, object]
) -> dict[str, object]:
    """Return a state of either form as ``optimizer.load_state_dict`` takes it."""
    if not _has_own_form(optimizer):
        return dict(state)
    if is_by_name(state):
        state = _with_numbers(parameter_names(model, optimizer), state)
    parameters = [one for group in optimizer.param_groups for one in group["params"]]
    kept = state.get("state")
    if not isinstance(kept, Mapping):
        return dict(state)
    spread_state = {
        key: _spread(values, parameters[key])
        if isinstance(key, int) and 0 <= key < len(parameters)
        else values
        for key, values in kept.items()
    }
    return {**state, "state": spread_state}


def is_by_name(state: Mapping[str, object]) -> bool:
    """Return whether the parameters in a state of an optimizer have names."""
    groups = state.get("param_groups")
    if not isinstance(groups, list) or not all(isinstance(group, Mapping) for group in groups):
        return False
    params = [group.get("params") for group in groups]
    return any(isinstance(one, list) and one and isinstance(one[0], str) for one in params)


def _has_own_form(optimizer: Optimizer) -> bool:
    """Return whether the state is torch's; one that wraps others has a form of its own."""
    return type(optimizer).state_dict is Optimizer.state_dict


def _with_numbers(names: Sequence[Sequence[str]], state: Mapping[str, object]) -> dict[str, object]:
    saved = cast("Groups", state["param_groups"])
    if len(saved) != len(names):
        raise CheckpointError(
            f"The optimizer has {len(names)} groups of parameters; {len(saved)} were saved."
        )
    numbers = {name: number for number, name in enumerate(n for group in names for n in group)}
    groups: Groups = []
    for index, own in enumerate(names):
        group = _group_of(own, saved, index)
        groups.append({**group, "params": [numbers[name] for name in own]})
    kept = state.get("state")
    if not isinstance(kept, Mapping):
        raise CheckpointError("The state of the optimizer is not what was saved.")
    return {
        **state,
        "state": {numbers.get(key, key): value for key, value in kept.items()},
        "param_groups": groups,
    }


def _group_of(names: Sequence[str], saved: Groups, index: int) -> dict[str, object]:
    """Find the saved group of the same parameters; their order does not matter."""
    # That of the same place first: two groups may both be empty.
    for group in (saved[index], *saved):
        params = group.get("params")
        if isinstance(params, list) and sorted(map(str, params)) == sorted(names):
            return group
    params = cast("list[object]", saved[index].get("params") or [])
    lost = sorted(set(names) - set(map(str, params)))
    extra = sorted(set(map(str, params)) - set(names))
    wrong = [f"'{lost[0]}' was not saved.{nearest(lost[0], extra)}"] if lost else []
    wrong += [f"'{extra[0]}' was saved and is not in it."] if extra else []
    raise CheckpointError(
        f"Group {index} of the optimizer does not have the saved parameters: {' '.join(wrong)}"
    )


def _spread(values: object, parameter: Tensor) -> object:
    """Cut what an optimizer keeps in the shape of a parameter as the parameter is cut."""
    if not isinstance(values, Mapping):
        return values
    return {
        name: spread(value, parameter)
        if isinstance(value, Tensor) and value.shape == parameter.shape
        else value
        for name, value in values.items()
    }
