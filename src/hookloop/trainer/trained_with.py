"""What a run is trained with, described from the objects themselves.

A run of a config keeps that config. A script has none, so its run keeps this description under the
same keys: optimizers, schedules, loss, data, arguments, hooks and model.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from enum import Enum
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING

from torch import Tensor, nn

from hookloop.data.description import show_module
from hookloop.data.mixing.mixture import Mixture
from hookloop.data.position.measures import measure
from hookloop.every import Every
from hookloop.runs.environment import HIDDEN, SECRET
from hookloop.runs.records import plain
from hookloop.trainer.model_table import count_parameters
from hookloop.trainer.resume_checks import settings_of

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from hookloop.data.mixing.mixture import TrainingStream
    from hookloop.data.stream import Stream
    from hookloop.engine.run import Run

MOST_LAYERS = 300
"""How many modules of a model are listed; of a larger model only a checksum of all is kept."""

LONGEST = 300
"""Characters of a value that are kept."""

_PLAIN = bool | int | float | str | None


def describe_training(run: Run) -> dict[str, object]:
    """Return what a run is trained with, as plain values under the keys of a config.

    It reads no data, and no tensor but small ones that are settings, such as class weights.
    """
    progress = run.progress
    parts: dict[str, object] = {
        "model": _describe_model(run.model),
        **_by_streams("train_data", _training_streams(run.train_data)),
        **_by_streams("val_data", run.val_data),
        "loss": describe_part(run._internals.loss_function),
        "step": _describe_named(run._internals.step_function),
        **settings_of(run),
        **_groups_of(run.optimizers),
        "metrics": _describe_named(dict(run._internals.meters)),
        "max_epochs": progress.max_epochs,
        "max_iters": progress.max_iters,
        **run._internals.arguments,
        "hooks": {hook.name: describe_part(hook) for hook in run.hooks},
    }
    described = {name: plain(value) for name, value in parts.items()}
    return {name: value for name, value in described.items() if value not in (None, {}, [])}


def describe_part(part: object) -> object:
    """Describe a function by its name, and an object by its class and what it was built with."""
    if part is None or isinstance(part, bool | int | float):
        return part
    if isinstance(part, partial):
        return {"type": describe_part(part.func), **_values(part.keywords)}
    if isinstance(part, FunctionType | MethodType) or inspect.isbuiltin(part):
        return _name_of(part)
    if isinstance(part, nn.Module) and not _parameters_of(part):  # Its text is all there is.
        return show_module(part)[:LONGEST]
    kept = {name: getattr(part, name, None) for name in _parameters_of(part)}
    return {"type": type(part).__name__, **_values(kept)}


def _describe_named(parts: object) -> object:
    if isinstance(parts, Mapping):
        return {str(name): describe_part(part) for name, part in parts.items()}
    return describe_part(parts)


def _parameters_of(part: object) -> list[str]:
    """Return the parameters of a class's constructor that its objects keep as attributes."""
    try:
        names = inspect.signature(type(part)).parameters
    except (TypeError, ValueError):  # A class of an extension has none.
        return []
    held = set(getattr(part, "__dict__", {}))
    if isinstance(part, nn.Module):  # It keeps tensors apart.
        held |= {name for name, _ in part.named_buffers(recurse=False)}
    return [name for name in names if name in held]


def _values(settings: Mapping[str, object]) -> dict[str, object]:
    """Return the settings that can be compared as text; of another object, its kind is kept."""
    return {
        name: HIDDEN if value is not None and SECRET.search(name) else _value(value)
        for name, value in settings.items()
    }


def _value(value: object) -> object:  # noqa: PLR0911 - a line for each kind
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, str):  # The address of a service may be all that it takes to use it.
        return HIDDEN if value.startswith(("http://", "https://")) else value[:LONGEST]
    if isinstance(value, _PLAIN | Every):
        return str(value) if isinstance(value, Every) else value
    if isinstance(value, Tensor):
        is_small = value.numel() <= 16
        return value.tolist() if is_small else f"tensor of shape {list(value.shape)}"
    if isinstance(value, list | tuple | set | frozenset) and len(value) <= 16:
        return [_value(one) for one in value]
    if isinstance(value, Mapping) and len(value) <= 16:
        return {str(name): _value(one) for name, one in value.items()}
    return _name_of(value) if callable(value) else type(value).__name__


def _name_of(function: object) -> str:
    """Return the name of a function; of one in Python, with a checksum of what it does."""
    name = str(getattr(function, "__qualname__", type(function).__name__)).rpartition(".")[2]
    module = str(getattr(function, "__module__", ""))
    if module.partition(".")[0] == "torch" or not hasattr(function, "__code__"):
        return name
    digest = hashlib.sha256(_show_code(function.__code__).encode()).hexdigest()
    return f"{name} (code {digest[:8]})"


def _show_code(code: CodeType) -> str:
    """Show what code does, without where it is."""
    inner = [_show_code(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts]
    return repr((code.co_code, code.co_names, code.co_varnames, inner))


def _training_streams(source: TrainingStream | None) -> Mapping[str, Stream]:
    if isinstance(source, Mixture):
        return source.streams
    return {} if source is None else {"": source}


def _by_streams(key: str, streams: Mapping[str, Stream]) -> dict[str, object]:
    described = {name: _describe_data(source) for name, source in streams.items()}
    return {key: described[""] if [*described] == [""] else described}


def _describe_data(source: Stream) -> dict[str, object]:
    data = source.data
    known: dict[str, object] = {"type": type(data).__name__, **measure(data)}
    known["dataset"] = type(data.dataset).__name__ if hasattr(data, "dataset") else None
    known["sampler"] = type(data.sampler).__name__ if hasattr(data, "sampler") else None
    for name in ("num_workers", "drop_last"):
        known[name] = getattr(data, name, None)
    del known["loaded in workers"]  # The number of workers tells more.
    return {name: value for name, value in known.items() if value is not None}


def _groups_of(optimizers: Mapping[str, Optimizer]) -> dict[str, object]:
    """Describe the parameter groups where an optimizer has several."""
    several = {name: one for name, one in optimizers.items() if len(one.param_groups) > 1}
    return {
        f"groups of {name}" if len(optimizers) > 1 else "groups": [
            {"parameters": len(group["params"]), **_settings_of_group(group)}
            for group in one.param_groups
        ]
        for name, one in several.items()
    }


def _settings_of_group(group: Mapping[str, object]) -> dict[str, object]:
    given = {**group, "lr": group.get("initial_lr", group.get("lr"))}
    return _values({k: v for k, v in given.items() if k not in ("params", "initial_lr")})


def _describe_model(model: nn.Module) -> dict[str, object]:
    parameters = list(model.parameters())
    layers = {
        name or "model": show_module(one)[:LONGEST]
        for name, one in model.named_modules()
        if not any(one.children())
    }
    kept: object = layers
    if len(layers) > MOST_LAYERS:
        kept = hashlib.sha256(repr(layers).encode()).hexdigest()[:16]
    return {
        "parameters": count_parameters(parameters),
        "trainable": count_parameters([one for one in parameters if one.requires_grad]),
        "layers": kept,
    }
