"""What the objects of a run hold, by name, found without running any code of the user's.

Attributes, the variables of a closure, the globals that a function uses, the parts of a list or
dict. The walk over them is bounded, and the same in each process that builds the same objects.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from array import array
from collections import UserDict, UserList, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from functools import partial
from operator import is_
from pathlib import PurePath
from queue import Queue
from threading import local
from types import CodeType, FunctionType, MappingProxyType, MethodType, ModuleType, SimpleNamespace
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from hookloop.beside import declares_state
from hookloop.objects.marks import LONG, SAMPLED
from hookloop.objects.values import GENERATOR_TYPES, MAPPINGS, PLAIN, container_of, is_plain

MOST = 20_000
"""How many parts are examined in all, besides the modules of the model."""

DEPTH = 6
"""How far attributes of attributes are followed."""

SOME = 100
"""How many parts of a list or dict are examined."""

LONGEST_NAME = 60
"""Characters of a key that names its part; a module is a key by its type."""

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

HOLDERS = (SimpleNamespace, Namespace, UserDict, UserList, Queue, local)
"""Classes of the standard library that only hold what a user puts there."""

WITH_STATE = (ContextVar, np.random.SeedSequence, np.ma.MaskedArray)
"""Classes of libraries whose parts are no attributes."""

Put = Callable[[object], None]
Kind = Literal["parameter", "buffer", "value", "stateful", "part", "iterator", "opaque"]


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
    holder: object, known: Collection[int] = ()
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
    elif isinstance(holder, ContextVar):
        yield Held("value", holder.get(None), cast("Put", holder.set))
    elif isinstance(holder, np.random.SeedSequence):
        yield Held("n_children_spawned", holder.n_children_spawned, None)
    elif isinstance(holder, np.ma.MaskedArray):
        yield Held("data", holder.data, None)
        yield Held("mask", holder.mask, partial(setattr, holder, "mask"))
    elif isinstance(holder, list):
        for index, part in enumerate(holder[:SOME]):
            yield Held(str(index), part, partial(holder.__setitem__, index))
    elif isinstance(holder, tuple | set | frozenset):
        for index, part in enumerate(list(holder)[:SOME]):
            yield Held(str(index), part, None)
    elif isinstance(holder, Mapping):
        for key, part in list(holder.items())[:SOME]:
            put = partial(holder.__setitem__, key) if isinstance(holder, dict) else None
            name = str(key)
            yield Held(name if len(name) < LONGEST_NAME else type(key).__name__, part, put)
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
    if isinstance(value, (Optimizer, LRScheduler, *HOLDERS, *WITH_STATE)):
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


def _held_by_module(module: nn.Module, known: Collection[int]) -> Iterator[Held]:
    for name, tensor in (*module._parameters.items(), *module._buffers.items()):
        if tensor is None:
            continue
        if id(tensor) not in known:
            yield Held(name, tensor, partial(_set_tensor, module, name))
        if _has_hooks(tensor):
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


def _has_hooks(tensor: Tensor) -> bool:
    return bool(tensor._backward_hooks or getattr(tensor, "_post_accumulate_grad_hooks", None))


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


# --- the walk over the objects of a run --------------------------------------------------------


@dataclass(frozen=True)
class Root:
    """An object of a run in which undeclared state may be.

    Attributes:
        holder: The object.
        is_data: Whether it is read from, so that it may be large.
        only_tensors: Whether only parameters and buffers of modules count.
        is_kept_apart: Whether its plain attributes are in the checkpoint already.
        is_declared: Whether it has a state in the checkpoint, which leaves something out.
        is_replaced: Whether a hook has given it during the training.
    """

    holder: object
    is_data: bool = False
    only_tensors: bool = False
    is_kept_apart: bool = False
    is_declared: bool = False
    is_replaced: bool = False


class Cell(NamedTuple):
    """One place where state may be.

    Attributes:
        path: Its name: ``loss.center``.
        value: What is there.
        put: Puts something else there.
        kind: What it is.
        root: In which object it was found.
    """

    path: str
    value: object
    put: Put | None
    kind: Kind
    root: Root


class Visited(NamedTuple):
    """An object that is looked at.

    Attributes:
        path: Its name: ``loss``.
        holder: The object.
        root: In which object it was found.
        cells: The places in it.
    """

    path: str
    holder: object
    root: Root
    cells: list[Cell]


def visit(  # noqa: C901 - what is passed over, and what is entered
    roots: Mapping[str, Root],
    declared: Iterable[object],
    constants: Mapping[int, Sequence[object]] = MappingProxyType({}),
) -> Iterator[Visited]:
    """Find all objects that are looked at, each once: the model first, data last.

    Args:
        roots: Where to begin, by name; the model is the first, as ``model``.
        declared: What is left out, as it has a state of its own.
        constants: What `constants_of` returned for modules, by their number. One that still holds
            the same is passed over.
    """
    model = cast("nn.Module", roots["model"].holder)
    modules = list(model.modules())
    known = _tensors_in(model, modules)
    seen = {id(one) for one in declared}
    # Modules of the model have no limit: there may be tens of thousands of them.
    left = MOST + 20 * len(modules)
    classes: set[type] = set()  # All their objects share what a class holds.
    own = {id(root.holder) for root in roots.values()}
    queue = deque((n, one.holder, one, DEPTH) for n, one in roots.items() if not one.is_data)
    # Data comes last, so that what others hold keeps its name when a hook replaces the data.
    data = deque((n, one.holder, one, DEPTH) for n, one in roots.items() if one.is_data)
    while (queue or data) and left > 0:
        path, holder, root, depth = (queue or data).popleft()
        if id(holder) in seen:
            continue
        seen.add(id(holder))
        same = constants.get(id(holder)) if type(holder) in classes else None
        if same is not None and _holds(module := cast("nn.Module", holder), same, known):
            left -= len(vars(module)) - len(OF_ANY_MODULE) + len(module._modules)
            inside = (
                (f"{path}.{name}", one) for name, one in module._modules.items() if one is not None
            )
            queue.extend((name, one, root, depth) for name, one in inside if id(one) not in own)
            continue
        if not is_examined(holder):
            continue
        kinds = () if type(holder) in classes else held_by_class(type(holder))
        classes.add(type(holder))
        cells: list[Cell] = []
        for held in (*held_by(holder, known), *kinds):
            left -= 1
            value, name = held.value, f"{path}.{held.name}"
            if id(value) in known or id(value) in seen or _is_of_engine(value):
                continue
            if id(value) in own:  # It has a name of its own.
                continue
            kind = _kind(holder, held, known)
            if root.is_declared and isinstance(value, LRScheduler):
                kind = "part"
            is_tensor = kind in ("parameter", "buffer")
            is_saved = root.is_kept_apart and depth == DEPTH and kind == "value"
            if not is_saved and (is_tensor or not root.only_tensors):
                cells.append(Cell(name, value, held.put, kind, root))
            inner = depth if isinstance(value, nn.Module) else depth - 1
            if kind == "part" and inner >= 0 and is_examined(value):
                (data if root.is_data else queue).append((name, value, root, inner))
        yield Visited(path, holder, root, cells)


def constants_of(module: nn.Module, known: Set[int] | None = None) -> list[object] | None:
    """Return all that a module holds, or None where more may change than its own attributes.

    Nearly all modules hold numbers, text, tensors and modules only. That such a one holds the same
    objects as before is seen much faster than that each of these is equal to what it was.

    Args:
        module: The module.
        known: Numbers of the tensors that it may hold; by default it may hold any.
    """
    parameters, buffers, modules = module._parameters, module._buffers, module._modules
    for tensor in (*parameters.values(), *buffers.values()):
        if tensor is not None and (
            (known is not None and id(tensor) not in known) or _has_hooks(tensor)
        ):
            return None
    attributes = vars(module) | {"training": None}  # Modes are compared by themselves.
    if any(map(attributes.get, HOOKS_OF_MODULE)):
        return None
    names = (*attributes, *parameters, *buffers, *modules)
    parts = (*parameters.values(), *buffers.values(), *modules.values())
    return [module, *names, *attributes.values(), *parts]


def _holds(module: nn.Module, constants: Sequence[object], known: Set[int]) -> bool:
    now = constants_of(module, known)
    return now is not None and len(now) == len(constants) and all(map(is_, now, constants))


def has_constants_only(visited: Visited) -> bool:
    """Return whether an object is a module that holds numbers, text and modules, and no more."""
    if not isinstance(visited.holder, nn.Module):
        return False
    inner = {id(one) for one in visited.holder._modules.values()}
    return all(type(c.value) in PLAIN or id(c.value) in inner for c in visited.cells)


def _kind(holder: object, held: Held, known: set[int]) -> Kind:  # noqa: PLR0911 - a line for each kind
    value = held.value
    if isinstance(holder, nn.Module):
        if held.name in holder._parameters:
            return "parameter"
        if held.name in holder._buffers:
            return "buffer"
    if isinstance(value, nn.Module | FunctionType | MethodType):
        return "part"
    is_fixed = held.put is None and isinstance(value, tuple)  # Only its parts can be restored.
    if not is_fixed and _is_value(value, known):
        return "value"
    if is_stateful(value):
        return "stateful"
    if hasattr(type(value), "__next__") and not hasattr(value, "fileno"):
        return "iterator"
    return "part" if is_examined(value) else "opaque"


def _is_of_engine(value: object) -> bool:
    """Return whether an object is code, or one of ours without a state, such as the run."""
    kind = type(value)
    if kind in PLAIN:
        return False
    if isinstance(value, type | ModuleType):
        return True
    return declares_state(kind) and not is_stateful(value)


def _is_value(  # noqa: PLR0911 - a line for each kind
    value: object, known: set[int], depth: int = DEPTH
) -> bool:
    """Return whether a value is one that a checkpoint can hold, judged by some of its parts."""
    kind = type(value)
    if kind in PLAIN or isinstance(value, (np.generic, Enum, PurePath, *GENERATOR_TYPES)):
        return True
    if isinstance(value, bytearray | array):
        return True
    if isinstance(value, Tensor):
        return id(value) not in known
    if isinstance(value, np.ndarray):
        return not value.dtype.hasobject and not isinstance(value, np.ma.MaskedArray)
    container = container_of(value)
    if container is None:
        return False
    mapping = cast("dict[object, object]", value)
    parts = list(mapping.values()) if container in MAPPINGS else list(cast("list[object]", value))
    chosen = parts if len(parts) <= LONG else parts[:: len(parts) // SAMPLED]
    if {type(part) for part in chosen} <= PLAIN:
        return True
    return depth > 0 and all(_is_value(part, known, depth - 1) for part in chosen)


def _tensors_in(model: nn.Module, modules: Iterable[nn.Module]) -> set[int]:
    """Return the tensors of a model that its ``state_dict`` holds."""
    known: dict[int, Tensor] = {}
    is_own = False
    for module in modules:
        left_out = module._non_persistent_buffers_set
        buffers = [one for name, one in module._buffers.items() if name not in left_out]
        tensors = (*module._parameters.values(), *buffers)
        known.update((id(one), one) for one in tensors if one is not None)
        is_own = is_own or type(module).state_dict is not nn.Module.state_dict
    if is_own and not any(hasattr(one, "to_local") for one in known.values()):
        # It may leave something out.
        state = [one for one in model.state_dict().values() if isinstance(one, Tensor)]
        there = {_address(one) for one in state if not is_lazy(one)}
        return {number for number, one in known.items() if is_lazy(one) or _address(one) in there}
    return set(known)


def _address(tensor: Tensor) -> tuple[object, ...]:
    return tensor.data_ptr(), tuple(tensor.shape)
