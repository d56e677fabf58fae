"""Parts of a Trainer that are of the wrong kind: a class, a name, a list where one is expected."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping

import torch
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau
from torch.utils.data import Dataset, IterableDataset

from hookloop.data.limits import check_batches, check_limit
from hookloop.engine.hook import Hook
from hookloop.errors import (
    ArgumentError,
    DataError,
    HookError,
    HookloopError,
    MetricError,
    ModelError,
    caused_by,
    nearest,
)
from hookloop.lr_schedule import Schedule
from hookloop.metrics.meters import Accumulating, is_collection
from hookloop.update.update import Update

Given = Mapping[str, object]


def check_given(given: Given) -> None:
    """Reject parts of a Trainer that are of the wrong kind.

    What the parts hold is checked where they are used; this is about what a user most often gives
    instead of them.

    Args:
        given: The arguments by the paths of their settings.
    """
    if "model" not in given:
        raise ArgumentError("Trainer needs a model: Trainer(model, train_data=..., ...).")
    for name, check in _CHECKS.items():
        if given.get(name) is not None:
            # So that a config can show the line of the key.
            with caused_by(name):
                check(name.rpartition(".")[2], given[name])


def _check_directory(name: str, value: object) -> None:
    if value == "":  # Which is the working directory to `Path`.
        raise ArgumentError(
            f"{name}='' names no directory: write {name}='.' for the working directory, or leave "
            "it out for a new one under runs/."
        )


def _check_model(name: str, value: object) -> None:
    if isinstance(value, type) and issubclass(value, torch.nn.Module):
        raise ModelError(f"model= is the class {value.__name__}: write {value.__name__}(...).")


def _check_data(name: str, value: object) -> None:
    name = name if name.endswith("_data") else f"{name}_data"  # As its stream is called.
    for stream, one in value.items() if isinstance(value, Mapping) else [("", value)]:
        where = f"{name}[{stream!r}]" if stream else name
        if isinstance(one, type):
            raise DataError(f"{where} is the class {one.__name__}: write {one.__name__}(...).")
        if isinstance(one, str):
            raise DataError(f"{where} is {one!r}: it must be an iterable of batches.")
        # A map-style Dataset passes `iter()`, since Python falls back to __getitem__. It would be
        # trained on sample by sample, as if each were a batch.
        is_samples = isinstance(one, Dataset) and not isinstance(one, IterableDataset)
        if is_samples and not isinstance(one, Iterable):
            kind = type(one).__name__
            raise DataError(
                f"{where} is {kind}: it must be an iterable of batches. It gives single samples: "
                f"write DataLoader(dataset, batch_size=...)."
            )
        if inspect.isfunction(one):
            call = "" if one.__name__ == "<lambda>" else f" Write {one.__name__}()."
            raise DataError(f"{where} is function: it must be an iterable of batches.{call}")


def _check_optimizer(name: str, value: object) -> None:
    for one in _each(name, value, ModelError, "an optimizer"):
        if isinstance(one, Optimizer):
            continue
        if isinstance(one, type) and issubclass(one, Optimizer):
            wanted = f"is the class {one.__name__}: write {one.__name__}(model.parameters(), ...)"
        elif isinstance(one, str):
            wanted = f"is {one!r}: names are for configs, write torch.optim.SGD(...) or another"
        else:
            wanted = f"is {type(one).__name__}: it must be a torch optimizer"
        raise ModelError(f"{name}= {wanted}.")


def _check_schedule(name: str, value: object) -> None:
    for one in _each(name, value, ModelError, "a schedule"):
        if isinstance(one, Schedule | LRScheduler | ReduceLROnPlateau):
            continue
        if isinstance(one, type):
            wanted = f"is the class {one.__name__}: write {one.__name__}(optimizer, ...)"
        elif isinstance(one, str):
            wanted = f"is {one!r}: names are for configs, write CosineAnnealingLR(...) or another"
        elif hasattr(one, "step") and hasattr(one, "state_dict") and not isinstance(one, Optimizer):
            continue  # It drives an optimizer its own way.
        else:
            wanted = f"is {type(one).__name__}: it must be a scheduler of torch.optim.lr_scheduler"
        raise ModelError(f"{name}= {wanted}.")


def _check_loss(name: str, value: object) -> None:
    if isinstance(value, type):
        raise ModelError(f"{name}= is the class {value.__name__}: write {value.__name__}().")
    if isinstance(value, str):
        raise ModelError(
            f"{name}= is {value!r}: it must be a function of output and targets."
            f"{_functional(value)}"
        )
    _check_call(name, value, ("output", "targets"), ModelError)


def _functional(name: str) -> str:
    """Return a sentence that suggests the loss function that a name stands for, if there is one."""
    functional = [one for one in dir(torch.nn.functional) if one.endswith(("loss", "entropy"))]
    known = f" Write torch.nn.functional.{name}." if name in functional else ""
    return known or nearest(name, functional)


def _check_step(name: str, value: object) -> None:
    if isinstance(value, Update):
        return
    for one in _each(name, value, ModelError, "a step"):
        if isinstance(one, type):
            raise ModelError(f"{name}= is the class {one.__name__}: it must be a function.")
        _check_call(name, one, ("run", "batch"), ModelError)


def _check_metrics(name: str, value: object) -> None:
    if not isinstance(value, Mapping) and not is_collection(value):
        what = "a list" if isinstance(value, list | tuple) else f"{_show(value)}"
        raise MetricError(
            f"metrics= is {what}: it must map names to metrics, metrics={{'accuracy': accuracy}}."
            f"{_functional(value) if isinstance(value, str) else ''}"
        )
    for called, metric in value.items() if isinstance(value, Mapping) else ():
        if isinstance(metric, str):
            raise MetricError(
                f"metrics['{called}'] is {metric!r}: it must be a function of output and targets, "
                f"or an object of torchmetrics.{_functional(metric)}"
            )
        if not isinstance(called, str):
            raise MetricError(f"metrics= has the name {called!r}: a name is text.")
        if isinstance(metric, type):
            kind = metric.__name__
            raise MetricError(f"metrics['{called}'] is the class {kind}: write {kind}(...).")
        # An object of torchmetrics is used through `update` and `compute`, and not called.
        if not isinstance(metric, Accumulating):
            _check_call(f"metrics['{called}']", metric, ("output", "targets"), MetricError)


def _check_hooks(name: str, value: object) -> None:
    if isinstance(value, Hook):
        raise HookError(f"hooks= is a single hook: give a list, [{type(value).__name__}(...)].")
    if isinstance(value, str):
        raise HookError(f"hooks= is {value!r}: give a list of hooks, [{value}(...)].")
    if isinstance(value, type) or not isinstance(value, Iterable):
        called = f"{value.__name__}()" if isinstance(value, type) else "..."
        raise HookError(f"hooks= is {_show(value)}: give a list of hooks, [{called}].")
    if isinstance(value, Mapping):
        for called, hook in value.items():
            if isinstance(hook, type):
                kind = hook.__name__
                raise HookError(f"hooks['{called}'] is the class {kind}: write {kind}(...).")


def _check_default_hooks(name: str, value: object) -> None:
    if value is False:
        return
    if not isinstance(value, Mapping):
        raise HookError(
            f"default_hooks= is {_show(value)}: it must map names to hooks, "
            "default_hooks={'console': None}, or be False for none at all. Other hooks are given "
            "as hooks=."
        )
    for called, hook in value.items():
        if isinstance(hook, type):
            kind = hook.__name__
            raise HookError(f"default_hooks['{called}'] is the class {kind}: write {kind}(...).")
        if isinstance(hook, bool):
            instead = "leave it out" if hook else "None removes a hook"
            raise HookError(f"default_hooks['{called}'] is {hook}: {instead}.")


def _check_points(name: str, value: object) -> None:
    # Text is iterable too: each letter would be taken for a point.
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise HookError(f"points= is {_show(value)}: give a list of mount points.")


def _check_load_from(name: str, value: object) -> None:
    if isinstance(value, Mapping):
        raise ModelError(
            "load_from= is a mapping: it must be the path of a checkpoint. Load a state that you "
            "have with model.load_state_dict(...)."
        )


def _check_seed_samples(name: str, value: object) -> None:
    if not isinstance(value, bool) and value != "workers":
        hint = nearest(value, ["workers"]) if isinstance(value, str) else ""
        raise DataError(f"{name}={value!r}: it must be True, False or 'workers'.{hint}")


def _check_count_tokens(name: str, value: object) -> None:
    _check_call(name, value, ("batch",), DataError)


def _check_limit(name: str, value: object) -> None:
    check_limit(value)


def _check_overfit(name: str, value: object) -> None:
    check_batches(name, value, name)


_CHECKS: dict[str, Callable[[str, object], None]] = {
    "model": _check_model,
    "train_data": _check_data,
    "val_data": _check_data,
    "data.test": _check_data,
    "data.predict": _check_data,
    "loss": _check_loss,
    "step": _check_step,
    "optimizer": _check_optimizer,
    "schedule": _check_schedule,
    "metrics": _check_metrics,
    "hooks": _check_hooks,
    "default_hooks": _check_default_hooks,
    "run_dir": _check_directory,
    "setup.points": _check_points,
    "setup.load_from": _check_load_from,
    "data.seed_samples": _check_seed_samples,
    "data.count_tokens": _check_count_tokens,
    "data.limit": _check_limit,
    "data.overfit": _check_overfit,
}


def _each(name: str, value: object, error: type[HookloopError], what: str) -> Iterable[object]:
    """Return what a part is one of, or the values of the mapping from names that it may be."""
    if isinstance(value, list | tuple):
        raise error(
            f"{name}= is a {type(value).__name__}: give {what}, or several as a mapping from "
            f"names, {name}={{'generator': ..., 'critic': ...}}."
        )
    return value.values() if isinstance(value, Mapping) else [value]


def _check_call(
    name: str, value: object, args: tuple[str, ...], error: type[HookloopError]
) -> None:
    """Reject what cannot be called with these arguments."""
    call = f"({', '.join(args)})"
    if not callable(value):
        raise error(f"{name}= is {_show(value)}: it must be a function{call}.")
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):  # Some builtins have none; the first call will tell.
        return
    try:
        # Binding the names as values counts the arguments without calling the user's function.
        signature.bind(*args)
    except TypeError as problem:
        own = getattr(value, "__name__", type(value).__name__)
        own = "" if own == "<lambda>" else own
        raise error(
            f"{name}= has the signature {own}{signature}, but it is called as {name}{call}: "
            f"{problem}."
        ) from problem


def _show(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, bool | int | float | str):
        return repr(value)
    return f"a {type(value).__name__}"
