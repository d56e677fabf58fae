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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePath
from types import FunctionType, MethodType, ModuleType
from typing import Any, Literal, NamedTuple, Protocol, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from hookloop.beside import declares_state
from hookloop.errors import CheckpointError
from hookloop.objects.held import (
    Held,
    Put,
    held_by,
    held_by_class,
    is_examined,
    is_stateful,
    places_of,
)
from hookloop.objects.marks import LONG, SAMPLED, Itself, mark_of
from hookloop.objects.values import (
    GENERATOR_TYPES,
    MAPPINGS,
    NO_STATE,
    PLAIN,
    CannotRestoreError,
    container_of,
    restore_value,
    to_value,
)

MOST = 20_000
"""How many parts are examined in all, besides the modules of the model."""

DEPTH = 6
"""How far attributes of attributes are followed."""

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

Kind = Literal["parameter", "buffer", "value", "stateful", "part", "iterator", "opaque"]

_log = logging.getLogger("hookloop")


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


class Roots(Protocol):
    """What is asked of a run: where to look, and what its checkpoints hold by themselves."""

    def __call__(self) -> Mapping[str, Root]:
        """Return the objects by name; the model is the first, as ``model``."""

    def declared(self) -> Iterable[object]:
        """Return parts with a state in checkpoints: optimizers, schedulers, ..."""

    def optimizers(self) -> Mapping[str, Optimizer]:
        """Return the optimizers by name; their parameters are always saved."""

    def freezes(self) -> bool:
        """Return whether a hook freezes parameters, and does so again after a resume."""


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


class Built(NamedTuple):
    """How a value was when the training began.

    Attributes:
        mark: What tells whether it has changed.
        state: The value itself, if it is small.
    """

    mark: object
    state: object


class Undeclared:
    """The undeclared state of a run.

    Args:
        roots: Where it may be; None for a run that is not trained.
        device: Where restored tensors go.

    Attributes:
        lost: What the training has changed and no checkpoint can hold: names, and what they are.
    """

    def __init__(
        self,
        roots: Roots | None = None,
        device: torch.device | None = None,
    ) -> None:
        self._roots = roots
        self.lost: dict[str, str] = {}
        self._device = device or torch.device("cpu")
        self._built: dict[str, Built] = {}
        self._groups: dict[str, list[int]] = {}
        self._flags: dict[str, bool] = {}
        self._found: list[Cell] | None = None
        self._has_begun = False
        self._is_settled = False
        self._loaded: dict[str, object] = {}
        self._loaded_parameters: dict[str, Tensor] = {}
        self._label = ""
        self._flags_loaded: dict[str, bool] = {}
        self._modules: dict[str, nn.Module] = {}
        self._modes: dict[str, bool] = {}
        self._modes_loaded: dict[str, bool] = {}

    def begin(self) -> None:
        """Remember how everything was built; later calls change nothing."""
        if not self._has_begun and self._roots is not None:
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
        if self._roots is None:
            return
        model = cast("nn.Module", self._roots()["model"].holder)
        self._modules |= {f"model.{name}": one for name, one in model.named_modules()}
        self._modes = {name: one.training for name, one in self._modules.items()}
        for name, is_training in self._modes_loaded.items():
            if name in self._modules:
                self._modules[name].training = is_training
        self._modes_loaded = {}

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
        values = dict(cast("Mapping[str, object]", state.get("values") or {}))
        saved = cast("Mapping[str, Tensor]", state.get("parameters") or {})
        self._loaded_parameters = {n: one for n, one in saved.items() if _is_evaluated(n)}
        self._label = label
        try:
            self._load_parameters(reports=False)
            self._put_back(values, own)
            for path, value in values.items():
                if path in own:
                    self._put(own[path], value)
        except BaseException:
            put_back()
            raise
        finally:
            self._loaded_parameters, self._label = {}, ""
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
        kept = [(c, copy) for c in chosen if (copy := self._copy(c)) is not NO_STATE]
        # Data may open its files and fill its cache when it is first read, as any process does.
        visited = [] if self._roots is None or not removes_new else self._visit()
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

    def _copy(self, cell: Cell) -> object:
        is_kept = cell.kind in ("parameter", "buffer", "value", "stateful")
        return self._saved(cell) if is_kept else NO_STATE

    # --- saving

    def state(self, *, tells: bool = True) -> dict[str, object]:
        """Return what differs from how it was built.

        Args:
            tells: Whether to report what cannot be saved.
        """
        if not self._has_begun:
            return {}
        with self._looking_once():
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
        saved = NO_STATE if cell.root.is_kept_apart else self._saved(cell)
        if saved is not NO_STATE and _can_be_put(cell):
            return "values", saved
        return None if _is_handle(cell, built) else ("lost", type(cell.value).__name__)

    def _added_groups(self, lost: dict[str, str]) -> dict[str, object]:
        """Return the parameters of each optimizer that has more of them than it was built with."""
        found: dict[str, object] = {}
        optimizers = {} if self._roots is None else self._roots.optimizers()
        for name, optimizer in optimizers.items():
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
        if self._roots is None:
            return {}
        model = cast("nn.Module", self._roots()["model"].holder)
        own = {f"model.{name}": one for name, one in model.named_parameters()}
        return own | {n: one for n, one in self.tensors().items() if isinstance(one, nn.Parameter)}

    def _flags_now(self) -> dict[str, bool]:
        if self._roots is None or self._roots.freezes():
            return {}
        return {name: one.requires_grad for name, one in self._parameters().items()}

    def _changed_flags(self) -> dict[str, object]:
        now = self._flags_now()
        return {n: flag for n, flag in now.items() if self._flags.get(n, flag) != flag}

    def _saved(self, cell: Cell) -> object:
        most = LARGEST_OF_DATA if cell.root.is_data else LARGEST
        if cell.kind == "stateful":
            return to_value(_plain(cast("Any", cell.value).state_dict()), most)
        if cell.kind in ("value", "buffer", "parameter"):
            return to_value(cell.value, most)
        return NO_STATE

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
        for name, optimizer in self._roots.optimizers().items() if self._roots else ():
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
        self._loaded_parameters = dict(cast("Mapping[str, Tensor]", state.get("parameters") or {}))
        self._label = label
        self._compare(cast("dict[str, int]", state.get("checksums") or {}), cells)
        values = dict(cast("Mapping[str, object]", state.get("values") or {}))
        if self._is_settled:  # A rewind: what has changed since then is put back.
            self._put_back(values, cells)
            # A hook may count how often it went back, or it would do so forever.
            kept = {path for path, cell in cells.items() if path in values and _is_memory(cell)}
            values = {path: state for path, state in values.items() if path not in kept}
        early = trains and not self._is_settled
        self._loaded = values
        self._flags_loaded = dict(cast("Mapping[str, bool]", state.get("requires_grad") or {}))
        self._modes_loaded = dict(cast("Mapping[str, bool]", state.get("modes") or {}))
        self._restore(lambda cell: not early or isinstance(cell.value, TENSORS))
        self._load_parameters(reports=not early)
        if not early:
            self._loaded, self._loaded_parameters = {}, {}
            self._set_flags()

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
        self._set_flags()
        missing = self._restore(lambda cell: True)
        self._load_parameters(reports=bool(self._label))
        self._loaded, self._loaded_parameters, self._label = {}, {}, ""
        return missing

    def _set_flags(self) -> None:
        for name, one in self._parameters().items() if self._flags else ():
            # Assigned: a parameter of a lazy module has no methods before its first batch.
            one.requires_grad = self._flags_loaded.get(
                name, self._flags.get(name, one.requires_grad)
            )

    def _restore(self, chosen: Callable[[Cell], bool]) -> list[str]:
        """Restore what was loaded; return the names of what has no place."""
        missing = dict.fromkeys(self._loaded)
        for cell in self._cells() if self._loaded else ():
            if cell.path in missing:
                del missing[cell.path]
                if chosen(cell):
                    self._put(cell, self._loaded[cell.path])
        return list(missing)

    def _put(self, cell: Cell, state: object) -> None:
        if cell.kind == "parameter" and isinstance(state, Tensor):
            self._check_shape(cell, state)
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

    def _load_parameters(self, *, reports: bool) -> None:
        saved = self._loaded_parameters
        own = {cell.path: cell for cell in self._cells() if cell.kind == "parameter"}
        with torch.no_grad():
            for path, value in saved.items():
                if path in own:
                    self._check_shape(own[path], value)
                    cast("Tensor", own[path].value).copy_(value)
        trained = self._trained()
        gone = [path for path in saved if path not in own]
        new = [p for p, cell in own.items() if p not in saved and id(cell.value) in trained]
        if gone and reports:
            _log.warning("The checkpoint has parameters that are gone: %s", ", ".join(gone))
        if new and reports:
            _log.warning("The checkpoint has no parameters for: %s", ", ".join(new))

    def _check_shape(self, cell: Cell, saved: Tensor) -> None:
        parameter = cast("Tensor", cell.value)
        if is_lazy(parameter):  # It gets its shape at the first forward, or here.
            cast("Any", parameter).materialize(saved.shape)
        if parameter.shape != saved.shape:
            raise CheckpointError(
                f"'{self._label}' does not fit: {cell.path} has the shape "
                f"{list(parameter.shape)}, and {list(saved.shape)} was saved."
            )

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
        optimizers = {} if self._roots is None else self._roots.optimizers()
        return {
            id(one) for own in optimizers.values() for g in own.param_groups for one in g["params"]
        }

    @contextmanager
    def _looking_once(self) -> Iterator[None]:
        """Find all places once for what follows, which makes and removes none."""
        self._found = list(self._cells())
        try:
            yield
        finally:
            self._found = None

    def _cells(self) -> Iterator[Cell]:
        """Find all places, each once, in an order that does not change."""
        if self._found is not None:
            yield from self._found
            return
        if self._roots is None:
            return
        names: dict[str, int] = {}
        for cell in self._walk():
            number = names[cell.path] = names.get(cell.path, 0) + 1
            yield cell if number == 1 else cell._replace(path=f"{cell.path}#{number}")

    def _walk(self) -> Iterator[Cell]:
        for visited in self._visit():
            yield from visited.cells

    def _visit(self) -> Iterator[Visited]:
        """Find all objects that are looked at."""
        assert self._roots is not None
        roots = self._roots()
        model = cast("nn.Module", roots["model"].holder)
        known = _tensors_in(model)
        seen = {id(one) for one in self._roots.declared()}
        # Modules of the model have no limit: there may be tens of thousands of them.
        left = MOST + 20 * sum(1 for _ in model.modules())
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


def _kind(holder: object, held: Held, known: set[int]) -> Kind:  # noqa: PLR0911 - a line for each kind
    value = held.value
    if isinstance(holder, nn.Module):
        if held.name in holder._parameters:
            return "parameter"
        if held.name in holder._buffers:
            return "buffer"
    is_fixed = held.put is None and isinstance(value, tuple)  # Only its parts can be restored.
    if not is_fixed and _is_value(value, known):
        return "value"
    if isinstance(value, nn.Module | FunctionType | MethodType):
        return "part"
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
        return not value.dtype.hasobject
    container = container_of(value)
    if container is None:
        return False
    mapping = cast("dict[object, object]", value)
    parts = list(mapping.values()) if container in MAPPINGS else list(cast("list[object]", value))
    chosen = parts if len(parts) <= LONG else parts[:: len(parts) // SAMPLED]
    if {type(part) for part in chosen} <= PLAIN:
        return True
    return depth > 0 and all(_is_value(part, known, depth - 1) for part in chosen)


def _tensors_in(model: nn.Module) -> set[int]:
    """Return the tensors of a model that its ``state_dict`` holds."""
    known: dict[int, Tensor] = {}
    is_own = False
    for module in model.modules():
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
