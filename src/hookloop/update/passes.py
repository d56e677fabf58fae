"""The gradients of an update, computed again without a trace: to see whether they are the same.

A pass that leaves no trace computes the same microbatches with the same random numbers, buffers and
plain attributes, fires only the hooks that take part, and records nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from torch import Tensor, nn
from torch.nn.modules import module as torch_modules
from torch.utils._python_dispatch import TorchDispatchMode

from hookloop.checkpoint.state.digest import digests
from hookloop.checkpoint.state.modules import keep_buffers, keep_modes, modules_of
from hookloop.data.batch import move_tensors
from hookloop.data.random.states import GeneratorStates
from hookloop.engine.hook import Hook
from hookloop.engine.plan import Calls
from hookloop.metrics.store import MetricStore
from hookloop.update.microbatches import Microbatches
from hookloop.update.reduction import RankParts
from hookloop.update.update import Group, Update

if TYPE_CHECKING:
    from hookloop.engine.run import Run

POINTS = ("before_forward", "after_forward", "after_loss", "after_backward")
CURRENT = ("batch", "output", "loss", "place", "stream", "will_skip")

Gradients = dict[str, Tensor | None]


@dataclass(frozen=True)
class Pass:
    """What one computation of the gradients has led to.

    Attributes:
        numbers: A digest of each gradient and buffer and of the loss, by name.
        modules: A digest of the output of each call of a module, in order; empty if the modules
            were not looked at.
        operations: A digest of what each operation got and returned; likewise.
    """

    numbers: Mapping[str, int]
    modules: Sequence[tuple[str, int]] = field(default=(), repr=False)
    operations: Sequence[tuple[str, int, int]] = field(default=(), repr=False)

    def __eq__(self, other: object) -> bool:
        """Return whether all bits are the same."""
        return isinstance(other, Pass) and self.numbers == other.numbers

    __hash__ = None  # type: ignore[assignment]

    def differing(self, other: Pass) -> list[str]:
        """Return the names of what differs."""
        names = dict.fromkeys([*self.numbers, *other.numbers])
        return [name for name in names if self.numbers.get(name) != other.numbers.get(name)]

    def place(self, other: Pass) -> str:
        """Say where two passes part: in the forward of a module, or in its backward."""
        for one, theirs in zip(self.modules, other.modules, strict=False):
            if one != theirs:
                return f"the forward of '{one[0]}'"
        names = self.differing(other)
        gradients = [name.removeprefix("gradient ") for name in names if name.startswith("grad")]
        if "loss" in names or not gradients:  # Of the training's own pass, modules are not known.
            return "the forward, in the pass of the training itself"
        # A backward goes from the last module to the first.
        module = gradients[-1].rpartition(".")[0] or gradients[-1]
        return f"the backward of '{module}' ({_few(gradients)})"

    def operation(self, other: Pass) -> str | None:
        """Return the first operation that got the same and returned something else."""
        for one, theirs in zip(self.operations, other.operations, strict=False):
            if one != theirs:
                same = one[:2] == theirs[:2]
                return one[0] if same else f"what '{one[0]}' gets, which torch has not computed"
        return None


class Passes:
    """Computes the gradients of an update, more than once.

    Args:
        update: The update.
        run: The run.
        batches: Its microbatches.
        group: As for `Update.add_gradients`.
    """

    def __init__(
        self, update: Update, run: Run, batches: list[object], group: Group | None
    ) -> None:
        self._update, self._run, self._batches, self._group = update, run, batches, group
        self._modules = modules_of(
            run.model, run._internals.loss_function, *run._internals.undeclared.modules()
        )
        self._parameters = _parameters(run, update)
        own = {id(one) for one in update.parameters()}
        # Gradients that this update does not drop, as those of the other model of a GAN.
        self._others: Gradients = {
            name: None if id(one) in own or one.grad is None else one.grad.clone()
            for name, one in self._parameters.items()
        }
        # Anything may change a batch in place, also the real pass.
        self._pristine = _copied(batches, run)
        self._put_back = self._keep()
        self._take_back = run.metrics.bookmark()
        self._group_begun = None if group is None else _shallow(vars(group))

    def aside(self, *, modules: bool = False, operations: bool = False) -> Pass:
        """Compute them without a trace; the random numbers stand behind them afterwards."""
        run = self._run
        current = {name: getattr(run, name) for name in CURRENT}
        kept = {name: one.grad for name, one in self._parameters.items()}
        update = self._update.apart().checked_by(None)
        batches = _copied(self._pristine, run)
        group = _group_like(self._group, update, batches)
        metrics, run.metrics = run.metrics, MetricStore()
        found: list[tuple[str, int]] = []
        trace = _Operations() if operations else None
        try:
            self._set_gradients(self._others)
            with _only_taking_part(run), _looking(run, found if modules else None):
                if trace is None:
                    update.gradients_of(run, batches, group)
                else:
                    with trace:
                        update.gradients_of(run, batches, group)
            return self._read(found, trace.found if trace is not None else ())
        finally:
            run.metrics = metrics
            self._set_gradients(kept)
            for name, value in current.items():
                setattr(run, name, value)

    def real(self, *, again: bool = False) -> tuple[bool, Pass]:
        """Compute them for the training.

        Args:
            again: Whether that was done before: observers have seen it, and do not see it again.
        """
        run, group = self._run, self._group
        batches = self._batches
        if again:
            self._take_back()
            self._set_gradients(self._others)
            if group is not None and self._group_begun is not None:
                vars(group).clear()
                vars(group).update(_shallow(self._group_begun))
            batches = _copied(self._pristine, run)
            if group is not None:
                _give_batches(group, batches)
        if isinstance(group, RankParts):
            group._averages = False
        if again:
            with _only_taking_part(run):
                made = self._update.gradients_of(run, batches, group)
        else:
            made = self._update.gradients_of(run, batches, group)
        return made, self._read((), ())

    def put_back(self) -> None:
        """Put back what a pass has changed: random numbers, buffers, attributes, modes."""
        self._put_back()

    def weights(self) -> Mapping[str, int]:
        """Return a digest of each parameter, which no pass may change."""
        return _read({name: one.detach() for name, one in self._parameters.items()})

    def average(self) -> None:
        """Average the gradients over the ranks, which every pass has only added."""
        if isinstance(self._group, RankParts):
            cast("Any", self._group._averager).average()

    def _keep(self) -> Callable[[], None]:
        run = self._run
        generators = GeneratorStates.now()
        hooks = [
            (hook, copy.deepcopy(hook.state_dict()))
            for hook in _acting(run)
            if hook.takes_part_in_training
        ]
        kept = [
            keep_buffers(self._modules),
            keep_modes(self._modules),
            run._internals.undeclared.keep_from_evaluation(removes_new=True),
        ]

        def put_back() -> None:
            for one in kept:
                one()
            for hook, state in hooks:
                if state:
                    hook.load_state_dict(copy.deepcopy(state))
            generators.restore()

        return put_back

    def _set_gradients(self, gradients: Gradients) -> None:
        for name, one in self._parameters.items():
            gradient = gradients[name]
            is_others = gradients is self._others and gradient is not None
            one.grad = gradient.clone() if is_others and gradient is not None else gradient

    def _read(
        self, modules: Sequence[tuple[str, int]], operations: Sequence[tuple[str, int, int]]
    ) -> Pass:
        tensors = {
            f"gradient {name}": one.grad
            for name, one in self._parameters.items()
            if one.grad is not None
        }
        tensors |= {
            f"buffer {name}": one for name, one in self._run.model.named_buffers() if one.numel()
        }
        if self._run.loss is not None:
            tensors["loss"] = self._run.loss.detach()
        return Pass(_read(tensors), tuple(modules), tuple(operations))


def why_not_repeated(run: Run, update: Update) -> str | None:
    """Return why the gradients of an update cannot be computed again; None if they can."""
    if type(update).make is not Update.make or update.keeps_gradients:
        return "step= is an Update of your own, which may do anything"
    if run._internals.shards is not None:
        return "the model is sharded, so that a rank has no whole gradients"
    if run.world.logical:
        return "parallel: {logical: ...} sums gradients while it computes them"
    return None


def _parameters(run: Run, update: Update) -> dict[str, Tensor]:
    """Return what may get a gradient, by name, each once."""
    named: dict[int, tuple[str, Tensor]] = {}
    for name, parameter in run.model.named_parameters():
        named.setdefault(id(parameter), (name, parameter))
    for number, tensor in enumerate(update.parameters()):
        named.setdefault(id(tensor), (f"parameter {number}", tensor))
    return dict(named.values())


def _read(tensors: Mapping[str, Tensor]) -> dict[str, int]:
    """Return a digest of each tensor, in one transfer."""
    return dict(zip(tensors, digests(tensors).tolist(), strict=True)) if tensors else {}


def _copied(batches: list[object], run: Run) -> list[object]:
    copied = copy.copy(batches)  # Of its own class: one of several streams tells which is current.
    for place in range(len(batches)):
        one = list.__getitem__(batches, place)
        list.__setitem__(copied, place, move_tensors(one, run.device, _clone))
    return copied


def _clone(tensor: Tensor) -> Tensor:
    # One that requires a gradient is a leaf of the user's.
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


def _group_like(group: Group | None, update: Update, batches: list[object]) -> Group | None:
    if group is None:
        return None
    if isinstance(group, Microbatches):
        return Microbatches(update, batches)
    copied = copy.copy(group)
    assert isinstance(copied, RankParts)
    copied._update, copied._averages = update, False
    _give_batches(copied, batches)
    return copied


def _give_batches(group: Group, batches: list[object]) -> None:
    if isinstance(group, Microbatches):
        group._batches = batches
    elif isinstance(group, RankParts):
        pairs = zip(group._parts, list.__iter__(batches), strict=True)
        group._parts = [part._replace(batch=one) for part, one in pairs]
        group._current = group._parts[0]


def _shallow(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Copy what a group adds up, and nothing that it only refers to."""
    added = ("_loss", "_numbers")
    return {name: copy.copy(one) if name in added else one for name, one in attributes.items()}


def _acting(run: Run) -> list[Hook]:
    return list(dict.fromkeys(hook for point in POINTS for hook in run._plan.calls(point).hooks))


@contextmanager
def _only_taking_part(run: Run) -> Iterator[None]:
    """Fire only the hooks that take part in the training."""
    plan = run._plan
    before = {point: plan.calls(point) for point in POINTS}
    for point, calls in before.items():
        kept = [entry for entry in calls.entries if entry[1].takes_part_in_training]
        setattr(plan, point, Calls.of(calls.point, kept))
    try:
        yield
    finally:
        for point, calls in before.items():
            setattr(plan, point, calls)


@contextmanager
def _looking(run: Run, found: list[tuple[str, int]] | None) -> Iterator[None]:
    """Take a digest of what each module returns."""
    if found is None:
        yield
        return
    names = {id(one): name or "the model" for name, one in run.model.named_modules()}

    def look(module: nn.Module, _inputs: object, output: object) -> None:
        name = names.get(id(module))
        if name is not None and not any(module.children()):
            found.append((name, _digest_of(output)))

    handle = torch_modules.register_module_forward_hook(look)
    try:
        yield
    finally:
        handle.remove()


class _Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Takes a digest of what each operation gets and returns."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: list[tuple[str, int, int]] = []

    def __torch_dispatch__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        got = _digest_of((args, kwargs or {}))
        output = func(*args, **(kwargs or {}))
        self.found.append((str(func), got, _digest_of(output)))
        return output


def _digest_of(value: object) -> int:
    tensors: dict[str, Tensor] = {}
    _collect(value, "", tensors)
    return int(digests(tensors).sum()) if tensors else 0


def _collect(value: object, path: str, into: dict[str, Tensor]) -> None:
    if isinstance(value, Tensor):
        into[path] = value.detach()
    elif isinstance(value, Mapping):
        for key, one in value.items():
            _collect(one, f"{path}.{key}", into)
    elif isinstance(value, tuple | list):
        for number, one in enumerate(value):
            _collect(one, f"{path}.{number}", into)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
