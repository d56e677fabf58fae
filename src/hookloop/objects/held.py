"""What an object holds, by name, found without running any code of the user's.

Attributes, the variables of a closure, the globals that a function uses, the parts of a list or
dict. A walk over them is bounded, and the same in each process that builds the same objects.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections import UserDict, UserList
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any, NamedTuple, cast

from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from hookloop.objects.values import is_plain

SOME = 100
"""How many parts of a list or dict are examined."""

LIBRARIES = frozenset(sys.stdlib_module_names) - {"__main__"} | {"numpy", "torch", "hookloop"}
"""Packages whose objects are not examined, but for modules, data sets and what calls others."""

DISPLAYS = frozenset(
    ("tqdm", "rich", "wandb", "tensorboardX", "mlflow", "comet_ml", "clearml", "matplotlib", "PIL")
)
"""Packages that show or store something: their objects take no part in a training."""

OF_ANY_MODULE = frozenset(vars(nn.Module()))
HOOKS_OF_MODULE = (
    *("_forward_hooks", "_forward_pre_hooks"),
    *("_backward_hooks", "_backward_pre_hooks"),
)
HOOKS_OF_TENSOR = ("_backward_hooks", "_post_accumulate_grad_hooks")
HOOKS_OF_OPTIMIZER = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")

HOLDERS = (SimpleNamespace, Namespace, UserDict, UserList)
"""Classes of the standard library that only hold what a user puts there."""

Put = Callable[[object], None]


class Held(NamedTuple):
    """One part of an object.

    Attributes:
        name: Its name there.
        value: The part.
        put: Puts another value in its place; None where that is impossible.
    """

    name: str
    value: object
    put: Put | None


def held_by(  # noqa: C901, PLR0912 - one for each kind
    holder: object, known: Container[int] = ()
) -> Iterator[Held]:
    """Yield what an object holds; see `held_by_class` for what its class does.

    Args:
        holder: The object.
        known: Numbers, as `id` returns them, of tensors of modules that are left out.
    """
    if isinstance(holder, nn.Module):
        yield from _held_by_module(holder, known)
    elif isinstance(holder, Optimizer):
        yield from _held_by_optimizer(holder)
    elif isinstance(holder, LRScheduler):
        yield from _held_by_schedule(holder)
    elif isinstance(holder, HOLDERS):
        yield from _attributes(holder)
    elif isinstance(holder, list):
        for index, part in enumerate(holder[:SOME]):
            yield Held(str(index), part, partial(holder.__setitem__, index))
    elif isinstance(holder, tuple | set | frozenset):
        for index, part in enumerate(list(holder)[:SOME]):
            yield Held(str(index), part, None)
    elif isinstance(holder, Mapping):
        for key, part in list(holder.items())[:SOME]:
            put = partial(holder.__setitem__, key) if isinstance(holder, dict) else None
            yield Held(str(key), part, put)
    elif isinstance(holder, FunctionType):
        yield from _held_by_function(holder)
    elif isinstance(holder, MethodType):
        yield Held("__self__", holder.__self__, None)
    elif isinstance(holder, partial):
        inner = {"func": holder.func, "args": holder.args, "keywords": holder.keywords}
        yield from (Held(name, part, None) for name, part in inner.items())
    elif not isinstance(holder, type | ModuleType):
        yield from _attributes(holder)


def is_examined(value: object) -> bool:
    """Return whether the parts of an object are looked at."""
    if isinstance(value, nn.Module | partial | list | tuple | set | frozenset | Mapping):
        return True
    if isinstance(value, (Optimizer, LRScheduler, *HOLDERS)):
        return True
    if isinstance(value, MethodType):
        return is_examined(value.__self__)
    if isinstance(value, FunctionType):
        return _is_users(value.__module__)
    if isinstance(value, type | ModuleType | Tensor):
        return False
    name = type(value).__module__ or ""
    return _is_users(name) or name.startswith("torch.utils.data.")


def _is_users(module: str | None) -> bool:
    root = (module or "").partition(".")[0]
    return root not in LIBRARIES and root not in DISPLAYS


def _held_by_module(module: nn.Module, known: Container[int]) -> Iterator[Held]:
    for name, tensor in (*module._parameters.items(), *module._buffers.items()):
        if tensor is None:
            continue
        if id(tensor) not in known:
            yield Held(name, tensor, partial(_set_tensor, module, name))
        if tensor._backward_hooks or getattr(tensor, "_post_accumulate_grad_hooks", None):
            yield from _functions_at(tensor, HOOKS_OF_TENSOR, f"{name}.")
    for name, inner in module._modules.items():
        if inner is not None:
            yield Held(name, inner, None)
    attributes = vars(module)
    for name, value in list(attributes.items()):
        if name not in OF_ANY_MODULE:
            yield Held(name, value, partial(attributes.__setitem__, name))
    if any(map(attributes.get, HOOKS_OF_MODULE)):
        yield from _functions_at(module, HOOKS_OF_MODULE)


def _functions_at(holder: object, names: Iterable[str], prefix: str = "") -> Iterator[Held]:
    """Yield the functions that were registered on something of torch's."""
    for name in names:
        for index, function in enumerate(list((getattr(holder, name, None) or {}).values())):
            yield Held(f"{prefix}{name[1:]}[{index}]", function, None)


def _held_by_optimizer(optimizer: Optimizer) -> Iterator[Held]:
    yield from _functions_at(optimizer, HOOKS_OF_OPTIMIZER)
    kind = type(optimizer)
    if _is_users(kind.__module__) and not _is_users(kind.state_dict.__module__):
        skipped = _of_bases(kind, "torch")
        for name, value in list(vars(optimizer).items()):
            if name not in skipped:
                yield Held(name, value, partial(setattr, optimizer, name))


def _held_by_schedule(schedule: LRScheduler) -> Iterator[Held]:
    """Yield what the state of a schedule leaves out: functions, and what no file can hold."""
    if _is_users(type(schedule).state_dict.__module__):  # It says what its state is.
        return
    for name, value in list(vars(schedule).items()):
        if name != "optimizer" and not is_plain(value):
            yield Held(name, value, partial(setattr, schedule, name))


def places_of(holder: object) -> list[dict[str, Any]]:
    """Return the dicts in which an object has its attributes, and a module its parts."""
    if isinstance(holder, type | ModuleType):
        return []
    attributes = getattr(holder, "__dict__", None)
    places = [attributes] if isinstance(attributes, dict) else []
    if isinstance(holder, nn.Module):
        places += [holder._parameters, holder._buffers, holder._modules]
    return cast("list[dict[str, Any]]", places)


def _set_tensor(module: nn.Module, name: str, value: object) -> None:
    place = module._parameters if name in module._parameters else module._buffers
    cast("dict[str, object]", place)[name] = value


def _attributes(holder: object) -> Iterator[Held]:
    attributes = getattr(holder, "__dict__", {})
    skipped = _of_bases(type(holder), "hookloop")
    for name, value in list(attributes.items()):
        if name not in skipped:
            yield Held(name, value, partial(attributes.__setitem__, name))
    for kind in type(holder).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            member = vars(kind).get(name)
            try:
                value = member.__get__(holder, kind) if member is not None else None
            except AttributeError:  # It has no value yet.
                continue
            if member is not None and name not in ("__dict__", "__weakref__"):
                yield Held(name, value, partial(member.__set__, holder))


def _of_bases(kind: type, package: str) -> set[str]:
    """Return the attributes that a class of a package sets, in an object of a user's subclass."""
    names: set[str] = set()
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] == package:
            for one in vars(base).values():
                names.update(one.__code__.co_names if isinstance(one, FunctionType) else ())
    return names


def held_by_class(kind: type) -> Iterator[Held]:
    """Yield what the user's classes of an object hold, and what their methods take from outside."""
    for base in kind.__mro__:
        if not _is_users(base.__module__):
            continue
        for name, value in list(vars(base).items()):
            function = getattr(value, "__func__", value)  # Of a static or a class method.
            if isinstance(value, property):
                function = value.fget
            if isinstance(function, FunctionType):
                yield from _used_by(function)
            elif not name.startswith("__") and not hasattr(type(value), "__get__"):
                yield Held(name, value, partial(setattr, base, name))


def _held_by_function(function: FunctionType) -> Iterator[Held]:
    for name, value in list(vars(function).items()):
        yield Held(name, value, partial(vars(function).__setitem__, name))
    defaults = function.__kwdefaults__ or {}
    for index, value in enumerate(function.__defaults__ or ()):
        yield Held(f"default {index}", value, None)
    for name, value in defaults.items():
        yield Held(name, value, partial(defaults.__setitem__, name))
    yield from _used_by(function)


def _used_by(function: FunctionType) -> Iterator[Held]:
    """Yield the variables that a function takes from outside: its closure and its module."""
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        try:
            if name != "__class__":  # Of a method that calls `super`.
                yield Held(name, cell.cell_contents, partial(setattr, cell, "cell_contents"))
        except ValueError:  # The variable has no value yet.
            continue
    variables = function.__globals__
    names = sorted(_names_in(code))
    for name in names:
        value = variables.get(name)
        if name in variables and not isinstance(value, ModuleType | type):
            yield Held(name, value, partial(variables.__setitem__, name))
        elif isinstance(value, ModuleType) and _is_users(value.__name__):  # helpers.next_scale()
            inside = vars(value)
            for one in names:
                if one in inside and not isinstance(inside[one], ModuleType | type):
                    put = partial(inside.__setitem__, one)
                    yield Held(f"{name}.{one}", inside[one], put)


def _names_in(code: CodeType) -> set[str]:
    names = set(code.co_names)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            names |= _names_in(inner)
    return names


def is_stateful(value: Any) -> bool:  # noqa: ANN401 - anything
    """Return whether an object returns and takes a state of its own."""
    return callable(getattr(type(value), "state_dict", None)) and callable(
        getattr(type(value), "load_state_dict", None)
    )
