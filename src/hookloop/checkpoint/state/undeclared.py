"""What a training changes that nobody declared as state: found, kept in checkpoints, or named.

A loss may have parameters, a model a temperature, a step a variable of its closure, a hook a second
model. Only what differs from how the script built it is saved, so that a setting that never changes
is obeyed after a resume, and a run without such state has the same files as before.

Nothing is done per iteration: all is looked at when a training begins, and at each save.
"""

from __future__ import annotations

import logging
from array import array
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FunctionType, MappingProxyType, MethodType
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.optim import Optimizer

from hookloop.errors import CheckpointError
from hookloop.objects.held import (
    Cell,
    Root,
    Visited,
    constants_of,
    has_constants_only,
    places_of,
    visit,
)
from hookloop.objects.marks import Itself, mark_of
from hookloop.objects.values import (
    GENERATOR_TYPES,
    NO_STATE,
    PLAIN,
    CannotRestoreError,
    restore_value,
    to_value,
)

LARGEST = 1_000_000_000
"""Numbers of a value that is saved."""

LARGEST_OF_DATA = 1_000_000
"""The same for a data set, whose cache may hold all of its samples."""

SMALL = 100_000
"""Numbers of a value that is remembered as it was built, to be put back by a rewind."""

EVALUATED = ("model", "loss", "step", "metrics")
"""The objects with which an evaluation computes."""

PARTS = ("parameters", "values", "checksums", "groups", "requires_grad", "modes")
"""What the state has at most, in this order."""

TENSORS = (Tensor, np.ndarray, *GENERATOR_TYPES)
"""What is state even if a hook has just made it: a number that `before_train` sets is a setting."""

IN_PLACE = (*TENSORS, list, dict, set, deque, bytearray, array)
"""What can be restored although nothing can be put in its place."""

EMPTY: Mapping[int, Sequence[object]] = MappingProxyType({})

_log = logging.getLogger("hookloop")


class Roots:
    """What is asked of a run: where to look, and what its checkpoints hold by themselves."""

    def __call__(self) -> Mapping[str, Root]:
        """Return the objects by name; the model is the first, as ``model``."""
        return {"model": Root(nn.Module())}

    def declared(self) -> Iterable[object]:
        """Return parts with a state in checkpoints: optimizers, schedulers, ..."""
        return ()

    def optimizers(self) -> Mapping[str, Optimizer]:
        """Return the optimizers by name; their parameters are always saved."""
        return {}

    def freezes(self) -> bool:
        """Return whether a hook freezes parameters, and does so again after a resume."""
        return True


class Built(NamedTuple):
    """How a value was when the training began.

    Attributes:
        mark: What tells whether it has changed.
        state: The value itself, if it is small.
    """

    mark: object
    state: object


@dataclass
class Loaded:
    """What was loaded, until it is restored.

    Attributes:
        label: Where it is from.
        parameters: All that an optimizer trains, besides those of the model.
        values: What the training had changed, by name.
        requires_grad: Which parameters train, where that differs from how the script builds them.
        modes: Which modules train, where that differs from how their epoch began.
    """

    label: str = ""
    parameters: Mapping[str, Tensor] = field(default_factory=dict)
    values: dict[str, object] = field(default_factory=dict)
    requires_grad: Mapping[str, bool] = field(default_factory=dict)
    modes: Mapping[str, bool] = field(default_factory=dict)

    @classmethod
    def from_state(cls, state: Mapping[str, object], label: str) -> Loaded:
        """Read what `Undeclared.state` returned."""
        names = ("parameters", "values", "requires_grad", "modes")
        parts = {name: dict(cast("Mapping[str, Any]", state.get(name) or {})) for name in names}
        return cls(label, **parts)


class Undeclared:
    """The undeclared state of a run.

    Args:
        roots: Where it may be; nowhere by default.
        device: Where restored tensors go.

    Attributes:
        lost: What the training has changed and no checkpoint can hold: names, and what they are.
    """

    def __init__(self, roots: Roots | None = None, device: torch.device | None = None) -> None:
        self._roots = roots or Roots()
        self.lost: dict[str, str] = {}
        self._device = device or torch.device("cpu")
        self._built: dict[str, Built] = {}
        self._groups: dict[str, list[int]] = {}
        self._flags: dict[str, bool] = {}
        self._found: list[Cell] | None = None
        self._has_begun = False
        self._is_settled = False
        self._loaded = Loaded()
        self._constants: dict[int, list[object]] = {}
        self._modules: dict[str, nn.Module] = {}
        self._modes: dict[str, bool] = {}

    def begin(self) -> None:
        """Remember how everything was built; later calls change nothing."""
        if not self._has_begun:
            self._has_begun = True
            self._built = {cell.path: _built(cell) for cell in self._cells()}
            self._groups = {n: _sizes(one) for n, one in self._roots.optimizers().items()}
            self._flags = self._flags_now()

    def note_replaced(self) -> None:
        """Remember how data was built that a hook has just given."""
        for cell in self._cells() if self._has_begun else ():
            if cell.root.is_replaced:
                self._built[cell.path] = _built(cell)

    def begin_epoch(self) -> None:
        """Remember which modules train, or restore it in an epoch that is continued."""
        self._modules |= {f"model.{name}": one for name, one in self._model().named_modules()}
        self._modes = {name: one.training for name, one in self._modules.items()}
        for name, is_training in self._loaded.modes.items():
            if name in self._modules:
                self._modules[name].training = is_training
        self._loaded.modes = {}

    def modules(self) -> list[nn.Module]:
        """Return the modules that were found when the training began."""
        return list(self._modules.values())

    def tensors(self) -> dict[str, Tensor]:
        """Return the parameters and buffers of modules besides the model and its data, by name."""
        found = {cell.path: cast("Tensor", cell.value) for cell in self._of_modules()}
        return {name: one for name, one in found.items() if not is_lazy(one)}

    def move(self) -> None:
        """Move them to the device."""
        if self._device.type == "cpu":
            return
        for cell in self._of_modules():
            tensor = cast("Tensor", cell.value)
            if tensor.device.type != "cpu" or is_lazy(tensor):
                continue
            if cell.kind == "parameter":  # The optimizer holds the same object.
                tensor.data = tensor.data.to(self._device)
            elif cell.put is not None:
                cell.put(tensor.to(self._device))

    def _of_modules(self) -> Iterator[Cell]:
        for cell in self._cells():
            is_tensor = cell.kind in ("parameter", "buffer") and not cell.root.is_data
            if is_tensor and not cell.path.startswith("model."):
                yield cell

    def lend(self, state: Mapping[str, object], label: str) -> Callable[[], None]:
        """Load what an evaluation computes with, for a while; return what puts it back."""
        self.begin()
        own = {cell.path: cell for cell in self._cells() if _is_evaluated(cell.path)}
        put_back = self.keep(_is_evaluated)
        loaded = Loaded.from_state(state, label)
        loaded.parameters = {n: one for n, one in loaded.parameters.items() if _is_evaluated(n)}
        try:
            self._load_parameters(loaded, reports=False)
            self._put_back(loaded.values, own)
            for path, value in loaded.values.items():
                if path in own:
                    self._put(own[path], value, label)
        except BaseException:
            put_back()
            raise
        return put_back

    def keep(
        self, is_kept: Callable[[str], bool] = lambda _: True, *, removes_new: bool = True
    ) -> Callable[[], None]:
        """Copy all of it, and return what puts it back, with the same objects.

        Args:
            is_kept: Returns by a name whether it is copied; by default all is.
            removes_new: Whether what is new then is removed: a forward may make an attribute when
                it is first called.
        """
        chosen = [cell for cell in self._cells() if is_kept(cell.path)]
        kept = [(c, copy) for c in chosen if (copy := _saved(c)) is not NO_STATE]
        # Data may open its files and fill its cache when it is first read, as any process does.
        visited = self._visit() if removes_new else []
        holders = [n.holder for n in visited if is_kept(f"{n.path}.") and not n.root.is_data]
        places = [(place, set(place)) for one in holders for place in places_of(one)]

        def put_back() -> None:
            for place, names in places:
                for name in place.keys() - names:
                    if not _is_open(place[name]):
                        del place[name]
            for cell, copy in kept:
                if cell.kind == "stateful" or cell.put is None:
                    self._put(cell, copy)
                else:  # Another object may have taken its place, or a variable another number.
                    cell.put(restore_value(cell.value, copy, self._device))

        return put_back

    def keep_from_evaluation(self, *, removes_new: bool) -> Callable[[], None]:
        """Copy all of it but what hooks hold, which may act on the results, as `keep` does."""
        return self.keep(lambda path: not path.startswith("hooks."), removes_new=removes_new)

    def marks_of_hooks(self) -> dict[str, object]:
        """Return what tells whether numbers and text in hooks have changed, by name."""
        found = (cell for cell in self._cells() if cell.path.startswith("hooks."))
        return {one.path: _mark(one) for one in found if type(one.value) in PLAIN}

    # --- saving

    def state(self, *, tells: bool = True) -> dict[str, object]:
        """Return what differs from how it was built.

        Args:
            tells: Whether to report what cannot be saved.
        """
        if not self._has_begun:
            return {}
        with self._looking_once(self._constants):
            return self._state(tells=tells)

    def _state(self, *, tells: bool) -> dict[str, object]:
        found: dict[str, dict[str, object]] = {}
        trained = self._trained()
        for cell in self._cells():
            # A flag of a hook mostly says that something was done: a new process does it again.
            if isinstance(cell.value, bool) and cell.path.startswith("hooks."):
                continue
            if (judged := self._judge(cell, trained)) is not None:
                part, saved = judged
                found.setdefault(part, {})[cell.path] = saved
        lost = cast("dict[str, str]", found.pop("lost", {}))
        found["groups"] = self._added_groups(lost)
        found["requires_grad"] = self._changed_flags()
        found["modes"] = {
            name: one.training
            for name, one in self._modules.items()
            if one.training != self._modes.get(name, one.training)
        }
        if tells:
            self._tell(lost)
        return {part: found[part] for part in PARTS if found.get(part)}

    def _judge(self, cell: Cell, trained: set[int]) -> tuple[str, object] | None:
        """Return the part of the state to which a value belongs, and its saved form, if any."""
        if cell.kind == "parameter" and id(cell.value) in trained:
            return "parameters", cell.value
        built, mark = self._built.get(cell.path), _mark(cell)
        if built is not None and mark == built.mark and cell.kind != "stateful":
            if cell.kind in ("parameter", "buffer"):
                return "checksums", cast("tuple[object, ...]", mark)[-1]
            # A resume skips the indices of a sampler that were used, wherever they come from.
            is_lost = cell.kind == "iterator" and not cell.root.is_kept_apart
            return ("lost", type(cell.value).__name__) if is_lost else None
        saved = NO_STATE if cell.root.is_kept_apart else _saved(cell)
        if saved is not NO_STATE and _can_be_put(cell):
            return "values", saved
        return None if _is_handle(cell, built) else ("lost", type(cell.value).__name__)

    def _added_groups(self, lost: dict[str, str]) -> dict[str, object]:
        """Return the parameters of each optimizer that has more of them than it was built with."""
        found: dict[str, object] = {}
        for name, optimizer in self._roots.optimizers().items():
            if _sizes(optimizer) == self._groups.get(name, _sizes(optimizer)):
                continue
            names = {id(one): path for path, one in self._parameters().items()}
            groups = [[names.get(id(p)) for p in g["params"]] for g in optimizer.param_groups]
            if any(one is None for group in groups for one in group):
                lost[f"optimizers.{name}"] = "a parameter that was added and has no name"
            else:
                found[name] = groups
        return found

    def _parameters(self) -> dict[str, nn.Parameter]:
        """Return all parameters by name, those of the model included."""
        own = {f"model.{name}": one for name, one in self._model().named_parameters()}
        return own | {n: one for n, one in self.tensors().items() if isinstance(one, nn.Parameter)}

    def _model(self) -> nn.Module:
        return cast("nn.Module", self._roots()["model"].holder)

    def _flags_now(self) -> dict[str, bool]:
        if self._roots.freezes():
            return {}
        return {name: one.requires_grad for name, one in self._parameters().items()}

    def _changed_flags(self) -> dict[str, object]:
        now = self._flags_now()
        return {n: flag for n, flag in now.items() if self._flags.get(n, flag) != flag}

    def _tell(self, lost: Mapping[str, str]) -> None:
        """Name what cannot be saved, once, and of nested parts the outermost."""
        new = {name: kind for name, kind in lost.items() if not _is_within(name, self.lost)}
        outer = [name for name in new if not _is_within(name, new.keys() - {name})]
        self.lost |= {name: new[name] for name in outer}
        if outer:
            _log.warning(
                "The training changes what no checkpoint can hold: %s. A resumed run begins with "
                "what the script builds there. Keep it in tensors, numbers or plain containers, "
                "build it before the training begins, or give its class state_dict() and "
                "load_state_dict().",
                ", ".join(f"{name} ({new[name]})" for name in outer),
            )

    # --- restoring

    def add_groups(self, state: Mapping[str, object]) -> None:
        """Give optimizers the parameters that they got in the training, before they are loaded."""
        self.begin()
        groups = cast("Mapping[str, list[list[str]]]", state.get("groups") or {})
        parameters = self._parameters() if groups else {}
        for name, optimizer in self._roots.optimizers().items():
            for index, names in enumerate(groups.get(name, [])):
                if index < len(optimizer.param_groups):
                    own = optimizer.param_groups[index]["params"]
                    own += [parameters[n] for n in names[len(own) :] if n in parameters]
                elif all(one in parameters for one in names):
                    optimizer.add_param_group({"params": [parameters[one] for one in names]})

    def load(self, state: Mapping[str, object], label: str, *, trains: bool) -> None:
        """Take what `state` returned, to be restored now, or for a training by `settle`.

        Args:
            state: The state.
            label: Where it is from.
            trains: Whether a training continues from it.
        """
        self.begin()
        cells = {cell.path: cell for cell in self._cells()}
        self._loaded = loaded = Loaded.from_state(state, label)
        self._compare(cast("dict[str, int]", state.get("checksums") or {}), cells)
        if self._is_settled:  # A rewind: what has changed since then is put back.
            self._put_back(loaded.values, cells)
            # A hook may count how often it went back, or it would do so forever.
            kept = {path for path, cell in cells.items() if _is_memory(cell)}
            loaded.values = {p: one for p, one in loaded.values.items() if p not in kept}
        early = trains and not self._is_settled
        self._restore(lambda cell: not early or isinstance(cell.value, TENSORS))
        self._load_parameters(loaded, reports=not early)
        if not early:
            self._set_flags()
            self._loaded = Loaded(modes=loaded.modes, requires_grad=loaded.requires_grad)

    def settle(self) -> None:
        """Restore what was loaded, when the hooks have set up everything in ``before_train``."""
        with self._looking_once():
            missing = self._settle()
        if missing:
            _log.warning(
                "The checkpoint has a state that this script has no place for, or builds only "
                "later: %s.",
                ", ".join(missing),
            )

    def _settle(self) -> list[str]:
        if not self._is_settled:
            self._is_settled = True
            for cell in self._cells():
                if not isinstance(cell.value, TENSORS) and cell.kind != "stateful":
                    self._built[cell.path] = _built(cell)
            self._flags = self._flags_now()
            self._modules = {
                cell.path: cell.value for cell in self._cells() if isinstance(cell.value, nn.Module)
            }
            self._note_constants()
        self._set_flags()
        loaded = self._loaded
        missing = self._restore(lambda cell: True)
        self._load_parameters(loaded, reports=bool(loaded.label))
        self._loaded = Loaded(modes=loaded.modes, requires_grad=loaded.requires_grad)
        return missing

    def _note_constants(self) -> None:
        for one in self._visit():
            if one.path.startswith("model") and has_constants_only(one):
                module = cast("nn.Module", one.holder)
                if (constants := constants_of(module)) is not None:
                    self._constants[id(module)] = constants

    def _set_flags(self) -> None:
        for name, one in self._parameters().items() if self._flags else ():
            # Assigned: a parameter of a lazy module has no methods before its first batch.
            one.requires_grad = self._loaded.requires_grad.get(
                name, self._flags.get(name, one.requires_grad)
            )

    def _restore(self, chosen: Callable[[Cell], bool]) -> list[str]:
        """Restore what was loaded; return the names of what has no place."""
        values, label = self._loaded.values, self._loaded.label
        missing = dict.fromkeys(values)
        for cell in self._cells() if values else ():
            if cell.path in missing:
                del missing[cell.path]
                if chosen(cell):
                    self._put(cell, values[cell.path], label)
        return list(missing)

    def _put(self, cell: Cell, state: object, label: str = "") -> None:
        if cell.kind == "parameter" and isinstance(state, Tensor):
            _check_shape(cell, state, label)
        try:
            if cell.kind == "stateful":
                cast("Any", cell.value).load_state_dict(restore_value(None, state, self._device))
                return
            new = restore_value(cell.value, state, self._device)
            if new is cell.value:
                return
            if cell.put is None:
                raise CannotRestoreError("its place cannot be set")
            cell.put(new)
        except CannotRestoreError as error:
            _log.warning("The state of %s cannot be restored: %s.", cell.path, error)

    def _put_back(self, values: dict[str, object], cells: Mapping[str, Cell]) -> None:
        lost = []
        for path, cell in cells.items():
            built = self._built.get(path)
            if path in values or built is None or cell.kind not in ("value", "buffer"):
                continue
            if _mark(cell) != built.mark:
                if built.state is NO_STATE:
                    lost.append(path)
                else:
                    values[path] = built.state
        if lost:
            _log.warning("Going back cannot undo what has changed in: %s.", ", ".join(lost))

    def _load_parameters(self, loaded: Loaded, *, reports: bool) -> None:
        saved = loaded.parameters
        own = {cell.path: cell for cell in self._cells() if cell.kind == "parameter"}
        with torch.no_grad():
            for path, value in saved.items():
                if path in own:
                    _check_shape(own[path], value, loaded.label)
                    cast("Tensor", own[path].value).copy_(value)
        trained = self._trained()
        gone = [path for path in saved if path not in own]
        new = [p for p, cell in own.items() if p not in saved and id(cell.value) in trained]
        if gone and reports:
            _log.warning("The checkpoint has parameters that are gone: %s", ", ".join(gone))
        if new and reports:
            _log.warning("The checkpoint has no parameters for: %s", ", ".join(new))

    def _compare(self, checksums: Mapping[str, int], cells: Mapping[str, Cell]) -> None:
        """Name the tensors that the training did not change, and that are others now."""
        other = [
            path
            for path, saved in checksums.items()
            if path in cells
            and cells[path].kind in ("parameter", "buffer")
            and cast("tuple[object, ...]", _mark(cells[path]))[-1] != saved
            and (path not in self._built or not self._is_settled)
        ]
        if other:
            _log.warning(
                "Resumed with other values of what the training does not change: %s. The values "
                "of this script are used.",
                ", ".join(other),
            )

    # --- finding

    def _trained(self) -> set[int]:
        groups = (g for own in self._roots.optimizers().values() for g in own.param_groups)
        return {id(one) for group in groups for one in group["params"]}

    @contextmanager
    def _looking_once(self, constants: Mapping[int, Sequence[object]] = EMPTY) -> Iterator[None]:
        """Find all places once for what follows, which makes and removes none.

        Args:
            constants: Modules that are passed over as long as they hold these.
        """
        self._found = list(self._cells(constants))
        try:
            yield
        finally:
            self._found = None

    def _cells(self, constants: Mapping[int, Sequence[object]] = EMPTY) -> Iterator[Cell]:
        """Find all places, each once, in an order that does not change."""
        if self._found is not None:
            yield from self._found
            return
        names: dict[str, int] = {}
        for visited in self._visit(constants):
            for cell in visited.cells:
                number = names[cell.path] = names.get(cell.path, 0) + 1
                yield cell if number == 1 else cell._replace(path=f"{cell.path}#{number}")

    def _visit(self, constants: Mapping[int, Sequence[object]] = EMPTY) -> Iterator[Visited]:
        return visit(self._roots(), self._roots.declared(), constants)


def _saved(cell: Cell) -> object:
    """Return a copy of a value as a checkpoint can hold it, or `NO_STATE`."""
    most = LARGEST_OF_DATA if cell.root.is_data else LARGEST
    if cell.kind == "stateful":
        return to_value(_plain(cast("Any", cell.value).state_dict()), most)
    if cell.kind in ("value", "buffer", "parameter"):
        return to_value(cell.value, most)
    return NO_STATE


def _check_shape(cell: Cell, saved: Tensor, label: str) -> None:
    parameter = cast("Tensor", cell.value)
    if is_lazy(parameter):  # It gets its shape at the first forward, or here.
        cast("Any", parameter).materialize(saved.shape)
    if parameter.shape != saved.shape:
        raise CheckpointError(
            f"'{label}' does not fit: {cell.path} has the shape "
            f"{list(parameter.shape)}, and {list(saved.shape)} was saved."
        )


def _can_be_put(cell: Cell) -> bool:
    """Return whether a saved value can be brought back: into its place, or into the object."""
    return cell.put is not None or cell.kind == "stateful" or isinstance(cell.value, IN_PLACE)


def _built(cell: Cell) -> Built:
    is_value = cell.kind in ("value", "buffer")
    return Built(_mark(cell), to_value(cell.value, SMALL) if is_value else NO_STATE)


def _is_evaluated(path: str) -> bool:
    return path.startswith(tuple(f"{name}." for name in EVALUATED))


def _is_memory(cell: Cell) -> bool:
    """Return whether a value is a number or text that a hook remembers for itself."""
    is_plain = cell.kind == "value" and not isinstance(cell.value, TENSORS)
    return is_plain and cell.path.startswith("hooks.")


def _sizes(optimizer: Optimizer) -> list[int]:
    return [len(group["params"]) for group in optimizer.param_groups]


def _mark(cell: Cell) -> object:  # noqa: PLR0911 - a line for each kind
    value = cell.value
    if cell.kind in ("value", "parameter", "buffer"):
        return mark_of(value)
    if cell.kind == "opaque":
        return type(value).__qualname__, Itself(value)
    if isinstance(value, FunctionType | MethodType):
        return "function", value.__qualname__
    if isinstance(value, dict | list | tuple | set | frozenset):
        return type(value).__qualname__, len(value)
    if isinstance(value, nn.Module):  # torch gives it another class when it is sharded.
        return "module"
    name = type(value).__module__, type(value).__qualname__
    for base in (int, float, complex, str, bytes, deque):
        if isinstance(value, base):  # What its attributes do not show.
            return "object", *name, base.__repr__(value)
    return "object", *name


def _is_handle(cell: Cell, built: Built | None) -> bool:
    """Return whether something was opened when it was first used, as any process does it."""
    is_first = built is None or built.mark == mark_of(None)
    return is_first and _is_open(cell.value)


def _is_open(value: object) -> bool:
    return any(hasattr(value, name) for name in ("close", "acquire", "shutdown"))


def _is_within(path: str, others: Collection[str]) -> bool:
    return any(path == one or path.startswith(f"{one}.") for one in others)


def _plain(state: object) -> object:
    """Return a state with plain mappings, as an ``OrderedDict`` of torch's has attributes."""
    if isinstance(state, Mapping):
        return {key: _plain(part) for key, part in state.items()}
    if type(state) in (list, tuple):
        parts = [_plain(part) for part in cast("list[object]", state)]
        return parts if isinstance(state, list) else tuple(parts)
    return state
