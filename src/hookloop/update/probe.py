"""What an iteration consists of, line by line in the order of happening: a point, a name, a digest.

Two runs part at the first line that differs. A line is taken where the run stands still: before and
after the hooks of a point, and at the entry and the return of every call of a module. To look
changes no bit: nothing is drawn, no hook of torch's is registered (which would disable its fast
paths), and nothing is replaced.
"""

from __future__ import annotations

import hashlib
import math
import os
import random
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from hookloop.checkpoint.state.digest import digest
from hookloop.engine.hook import Call, Hook, Priority
from hookloop.engine.points import POINTS
from hookloop.objects.held import OF_ANY_MODULE
from hookloop.objects.values import GENERATOR_TYPES, PLAIN, to_state
from hookloop.runs.policy import is_clock

if TYPE_CHECKING:
    from hookloop.engine.run import Run

DEPTH = 12
"""How deep containers and objects are looked into."""

SHOWN = 40
"""Characters of a setting that stands in a line as it is."""

SETTINGS = ("setting", "group")
"""Kinds that decide how is computed; all others are what is computed."""

Note = Callable[["Line"], object]


class Line(NamedTuple):
    """One thing at one moment of an iteration.

    Attributes:
        at: The moment: a mount point, or the call of a module.
        kind: ``generator``, ``weight``, ``buffer``, ``optimizer``, ``group``, ``hook``,
            ``setting``, ``value``, ``ids``, ``batch``, ``input``, ``output``, ``loss`` or
            ``gradient``.
        name: What it is.
        digest: Equal only if all bits are.
    """

    at: str
    kind: str
    name: str
    digest: str


# --- digests --------------------------------------------------------------------------------------


def digest_of(value: object) -> str | None:
    """Return 16 hex digits for the bits of a value; None if it has none that can be read.

    >>> digest_of([1, 2.0]) == digest_of([1, 2.0]), digest_of(-0.0) == digest_of(0.0)
    (True, False)
    >>> digest_of(torch.ones(2)) == digest_of(torch.ones(2, dtype=torch.float64))
    False
    """
    hashed = hashlib.blake2b(digest_size=8)
    return hashed.hexdigest() if _feed(hashed.update, value, DEPTH) else None


def _feed(take: Callable[[bytes], object], value: object, depth: int) -> bool:  # noqa: PLR0911, PLR0912, C901 - a line for each kind
    """Hash a value; return whether there was anything to hash."""
    kind = type(value)
    if kind is float:
        take(b"f" + struct.pack("<d", value))
        return True
    if kind in PLAIN:
        take(f"{kind.__name__}:{value!r};".encode())
        return True
    if isinstance(value, Tensor):
        return _feed_tensor(take, value)
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            return _feed(take, value.tolist(), depth - 1)
        take(f"array:{value.dtype.str}{value.shape};".encode())
        take(np.ascontiguousarray(value).tobytes())
        return True
    if isinstance(value, GENERATOR_TYPES):
        return _feed(take, to_state(value), depth - 1)
    if isinstance(value, np.generic | Enum | PurePath | range | slice):
        take(f"{kind.__name__}:{value!r};".encode())
        return True
    if isinstance(value, bytearray | memoryview):
        take(b"bytes:" + bytes(value))
        return True
    if depth <= 0:
        return False
    if isinstance(value, Mapping):
        parts: Iterable[tuple[object, object]] = list(value.items())
    elif isinstance(value, list | tuple):
        parts = enumerate(value)
    elif isinstance(value, set | frozenset):
        parts = enumerate(sorted(digest_of(one) or "" for one in value))
    elif is_dataclass(value) and not isinstance(value, type):
        parts = [(one.name, getattr(value, one.name, None)) for one in fields(value)]
    elif hasattr(value, "__dict__") and not callable(value):
        parts = list(vars(value).items())
    else:
        return False
    take(f"<{kind.__name__}".encode())
    found = False
    for key, part in parts:
        take(f"{key!r}=".encode() if type(key) in PLAIN else b"?=")
        found = _feed(take, part, depth - 1) or found
    take(b">")
    return found or isinstance(value, Mapping | list | tuple | set | frozenset)


def _feed_tensor(take: Callable[[bytes], object], value: Tensor) -> bool:
    if is_lazy(value) or value.device.type == "meta" or _is_inside_transform(value):
        return False
    take(f"tensor:{digest(value):x};".encode())
    return True


def _is_inside_transform(value: Tensor) -> bool:
    """Return whether a function of torch.func maps over a tensor, whose bits cannot be read."""
    check = getattr(torch._C._functorch, "is_functorch_wrapped_tensor", None)
    return bool(check is not None and check(value))


def generators_now(run: Run) -> Iterator[tuple[str, str]]:
    """Yield the generators of the process and of the training data, with digests."""
    version, words, gauss = random.getstate()
    packed = struct.pack(f"<{len(words)}I", *words)
    yield "python", cast("str", digest_of([version, packed, gauss]))
    yield "numpy", cast("str", digest_of(np.random.get_state()))
    yield "torch", cast("str", digest_of(torch.get_rng_state()))
    if run.device.type == "cuda":
        for number, state in enumerate(torch.cuda.get_rng_state_all()):
            yield f"cuda {number}", cast("str", digest_of(state))
    if run.device.type == "mps":
        yield "mps", cast("str", digest_of(torch.mps.get_rng_state()))
    data = run.train_data
    for number, one in enumerate([] if data is None else data.generators()):
        yield f"data {number}", cast("str", digest_of(one.get_state()))


# --- the state of a run ---------------------------------------------------------------------------


class StateLines:
    """Reads the state of a run as lines.

    Args:
        run: The run.
        leave_out: Hooks whose state is left out: those that keep files, say.
    """

    def __init__(self, run: Run, leave_out: Callable[[Hook], bool] = lambda hook: False) -> None:
        self._run = run
        self._leave_out = leave_out

    def names(self) -> dict[int, str]:
        """Return the names of all modules, by identity."""
        run = self._run
        found = {id(one): name for name, one in _named_modules("", run.model)}
        if isinstance(run._internals.loss_function, nn.Module):
            for name, one in _named_modules("loss", run._internals.loss_function):
                found.setdefault(id(one), name)
        return found

    def whole(self, at: str) -> Iterator[Line]:
        """Yield everything that the next iteration follows from."""
        yield from self.generators(at)
        yield from self.weights(at)
        yield from self.buffers(at)
        yield from self.optimizers(at)
        yield from self.settings(at)
        yield from self.values(at)
        yield from self.hooks(at)

    def generators(self, at: str) -> Iterator[Line]:
        """Yield the generators of random numbers."""
        for name, found in generators_now(self._run):
            yield Line(at, "generator", name, found)

    def _parameters(self) -> Iterator[tuple[str, Tensor]]:
        yield from self._run.model.named_parameters()
        for name, one in self._run._internals.undeclared.tensors().items():
            if isinstance(one, nn.Parameter):
                yield name, one

    def weights(self, at: str) -> Iterator[Line]:
        """Yield the parameters."""
        for name, one in self._parameters():
            yield from _line(at, "weight", name, one)

    def gradients(self, at: str) -> Iterator[Line]:
        """Yield the gradients, the last parameter first: backward meets it first."""
        for name, one in reversed(list(self._parameters())):
            if one.grad is not None:
                yield from _line(at, "gradient", name, one.grad)

    def buffers(self, at: str) -> Iterator[Line]:
        """Yield the buffers."""
        for name, one in self._run.model.named_buffers():
            yield from _line(at, "buffer", name, one)
        for name, one in self._run._internals.undeclared.tensors().items():
            if not isinstance(one, nn.Parameter):
                yield from _line(at, "buffer", name, one)

    def optimizers(self, at: str) -> Iterator[Line]:
        """Yield the settings of all groups, and the state of each parameter."""
        run = self._run
        names = {id(one): name for name, one in self._parameters()}
        for label, optimizer in run.optimizers.items():
            prefix = "" if label == "default" else f"{label}."
            for number, group in enumerate(optimizer.param_groups):
                for key, value in group.items():
                    if key != "params":
                        yield from _line(at, "group", f"{prefix}{number}.{key}", value)
                for place, parameter in enumerate(group["params"]):
                    name = names.get(id(parameter), f"{number}.{place}")
                    # Asked for without making an entry: the state is a defaultdict.
                    state = optimizer.state.get(parameter) or {}
                    for key, value in state.items():
                        yield from _line(at, "optimizer", f"{prefix}{name}.{key}", value)
        if run._internals.scaler is not None:
            yield from _line(at, "optimizer", "scaler", run._internals.scaler.state_dict())

    def settings(self, at: str) -> Iterator[Line]:
        """Yield the plain attributes and the mode of every module."""
        roots: list[tuple[str, nn.Module]] = [("", self._run.model)]
        if isinstance(self._run._internals.loss_function, nn.Module):
            roots.append(("loss", self._run._internals.loss_function))
        for root, module in roots:
            for name, one in _named_modules(root, module):
                yield from module_settings(at, name, one)

    def values(self, at: str) -> Iterator[Line]:
        """Yield what else the training has changed: variables of a step, attributes, ..."""
        state = self._run._internals.undeclared.state(tells=False)
        for name, value in cast("Mapping[str, object]", state.get("values") or {}).items():
            # What participating hooks hold beside their state shows in what they do.
            if not name.startswith("hooks.") and not is_clock(name.rpartition(".")[2]):
                yield from _line(at, "value", name, value)

    def hooks(self, at: str) -> Iterator[Line]:
        """Yield the states of hooks, without clocks."""
        for hook in self._run.hooks:
            if isinstance(hook, LooksOnly) or self._leave_out(hook):
                continue
            for key, value in hook.state_dict().items():
                if is_clock(str(key)):
                    continue
                kept = _without_clocks(value)
                parts = kept.items() if isinstance(kept, dict) and kept else [("", kept)]
                for part, one in parts:
                    name = ".".join(filter(None, (hook.name, str(key), str(part))))
                    yield from _line(at, "hook", name, one)

    def moment(self, at: str) -> Iterator[Line]:
        """Yield what the present microbatch has led to so far, beside the state."""
        run = self._run
        yield from _line(at, "batch", "batch", run.batch)
        yield from _line(at, "output", "output", run.output)
        yield from _line(at, "loss", "loss", run.loss)
        yield from self.gradients(at)


def module_settings(at: str, name: str, module: nn.Module) -> Iterator[Line]:
    """Yield the mode and the plain attributes of a module."""
    label = f"{name}." if name else ""
    yield Line(at, "setting", f"{label}training", str(module.training))
    for key, value in vars(module).items():
        if key in OF_ANY_MODULE or is_clock(key) or isinstance(value, nn.Module):
            continue
        if type(value) in PLAIN or isinstance(value, list | tuple | dict | set | Tensor | Enum):
            kind = "buffer" if isinstance(value, Tensor) else "setting"
            yield from _line(at, kind, f"{label}{key}", value)


def _named_modules(root: str, module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    for name, one in module.named_modules():
        yield ".".join(filter(None, (root, name))), one


def _line(at: str, kind: str, name: str, value: object) -> Iterator[Line]:
    if value is None and kind not in SETTINGS:
        return
    # A short setting says what it is.
    is_shown = kind in SETTINGS and type(value) in PLAIN and len(repr(value)) <= SHOWN
    found = repr(value) if is_shown else digest_of(value)
    if found is not None:
        yield Line(at, kind, name, found)


def _without_clocks(value: object) -> object:
    if isinstance(value, Mapping):
        return {k: _without_clocks(v) for k, v in value.items() if not is_clock(str(k))}
    return [_without_clocks(one) for one in value] if isinstance(value, list | tuple) else value


# --- calls of modules -----------------------------------------------------------------------------


@contextmanager
def watching_modules(names: Mapping[int, str], run: Run, note: Note) -> Iterator[None]:
    """Note the entry and the return of every call of a module in this thread, for a while.

    An entry is all that the call depends on: inputs, the module's own parameters, buffers, plain
    attributes and mode, and the generators.

    Args:
        names: The names of modules, by identity; others get the name of their class.
        run: The run.
        note: Takes each line.
    """
    # The class is changed, not the modules: torch's layers take other kernels as soon as one of
    # them has a hook of its own, and hooks for all modules do not see keyword arguments.
    original = nn.Module.__call__
    process, thread = os.getpid(), threading.get_ident()
    calls: Counter[str] = Counter()

    def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - of the user's modules
        is_ours = os.getpid() == process and threading.get_ident() == thread
        is_traced = torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None
        if is_traced or not is_ours:
            return original(module, *args, **kwargs)
        name = names.get(id(module), f"<{type(module).__name__}>")
        calls[name] += 1
        at = name or "model"
        if calls[name] > 1:
            at += f" (call {calls[name]})"
        for line in _entry(f"entry of {at}", name, module, args, kwargs, run):
            note(line)
        output = original(module, *args, **kwargs)
        for line in _line(f"output of {at}", "output", name or "model", output):
            note(line)
        return output

    nn.Module.__call__ = call  # type: ignore[method-assign]
    try:
        yield
    finally:
        nn.Module.__call__ = original  # type: ignore[method-assign]


def _entry(
    at: str,
    name: str,
    module: nn.Module,
    args: Sequence[object],
    kwargs: Mapping[str, object],
    run: Run,
) -> Iterator[Line]:
    label = f"{name}." if name else ""
    for generator, found in generators_now(run):
        yield Line(at, "generator", generator, found)
    for place, one in enumerate(args):
        yield from _line(at, "input", f"{name or 'model'} input {place}", one)
    for key, one in kwargs.items():
        yield from _line(at, "input", f"{name or 'model'} input {key}", one)
    for key, parameter in module.named_parameters(recurse=False):
        yield from _line(at, "weight", f"{label}{key}", parameter)
    for key, buffer in module.named_buffers(recurse=False):
        yield from _line(at, "buffer", f"{label}{key}", buffer)
    yield from module_settings(at, name, module)


# --- a whole iteration ----------------------------------------------------------------------------


class LooksOnly(Hook):
    """A hook that only looks: it takes part in nothing, and its state is nobody's."""

    draws_random_numbers = False


class Probe:
    """Takes the lines of iterations; `hooks` are to be given to the run.

    Args:
        take: Gets the number of an iteration and all of its lines, right after it.
        first: The first iteration that is taken.
        last: The last one; None for all.
        leave_out: Hooks whose state is left out.
    """

    def __init__(
        self,
        take: Callable[[int, list[Line]], object],
        *,
        first: int = 1,
        last: int | None = None,
        leave_out: Callable[[Hook], bool] = lambda hook: False,
    ) -> None:
        self._take = take
        self._first, self._last = first, math.inf if last is None else last
        self._leave_out = leave_out
        self._lines: list[Line] = []
        self._iter = 0
        self._watching: Any = None
        self._ids: dict[str, _Indices] = {}
        self.hooks: tuple[Hook, ...] = (_Before(self), _After(self))

    @property
    def is_open(self) -> bool:
        """Whether lines of an iteration are taken now."""
        return self._watching is not None

    def note(self, lines: Iterable[Line]) -> None:
        """Add lines of the present iteration."""
        if self._watching is not None:
            self._lines += lines

    def state(self, run: Run) -> StateLines:
        """Return what reads the state of the run."""
        return StateLines(run, self._leave_out)

    def watch_data(self, run: Run) -> None:
        """Keep the indices of the batches that loaders ask for from now on."""
        for stream in [] if run.train_data is None else run.train_data.parts():
            kept = self._ids.setdefault(stream.name, _Indices())
            stream.current.reader.note_indices(kept.note)

    def begin(self, run: Run) -> None:
        """Take the state with which an iteration begins."""
        ids = list(self._ids_now(run))  # Also of iterations that are not looked at.
        number = run.progress.iter + 1
        if not self._first <= number <= self._last:
            return
        self._lines, self._iter = [], number
        state = self.state(run)
        self._lines += [*state.whole("before_train_iter"), *ids]
        self._lines += _line("before_train_iter", "batch", "batch", run.batch)
        self._watching = watching_modules(state.names(), run, self._lines.append)
        self._watching.__enter__()

    def end(self, run: Run) -> None:
        """Take the state after an iteration, and hand it over."""
        if self._watching is None:
            return
        self.close()
        state = self.state(run)
        self._lines += state.whole("after_train_iter")
        lines, self._lines = self._lines, []
        self._take(self._iter, lines)

    def close(self) -> None:
        """Leave the iteration, finished or not."""
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.__exit__(None, None, None)

    def _ids_now(self, run: Run) -> Iterator[Line]:
        """Yield the indices of the batches of this iteration, where a loader asks for them."""
        for stream in [] if run.train_data is None else run.train_data.parts():
            if (kept := self._ids.get(stream.name)) is not None:
                found = kept.up_to(stream.at.passes, stream.at.batches)
                if found:
                    yield from _line("before_train_iter", "ids", stream.name or "train", found)


class _Indices:
    """The indices of the batches of a stream that the training has not reached yet."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[int, int], object] = {}

    def note(self, passes: int, batch: int, group: object) -> None:
        """Keep those of a batch: workers ask for them long before it is trained on."""
        self._waiting[passes, batch] = group

    def up_to(self, passes: int, batches: int) -> list[object]:
        """Return those of the batches up to a position, and forget them."""
        found = [key for key in sorted(self._waiting) if key < (passes, batches)]
        return [self._waiting.pop(key) for key in found]


class _Before(LooksOnly):
    """Looks before all other hooks of a point."""

    name = "probe_before"
    priority = Priority.HIGHEST

    def __init__(self, probe: Probe) -> None:
        self._probe = probe

    def before_train(self, run: Run) -> None:
        self._probe.watch_data(run)

    def before_train_epoch(self, run: Run) -> None:
        self._probe.watch_data(run)

    def before_train_iter(self, run: Run) -> None:
        self._probe.begin(run)

    def after_forward(self, run: Run) -> None:
        self._probe.note(_line("forward", "output", "output", run.output))

    def after_loss(self, run: Run) -> None:
        self._probe.note(_line("loss", "loss", "loss", run.loss))

    def after_backward(self, run: Run) -> None:
        self._probe.note(self._probe.state(run).gradients("backward"))

    def before_update(self, run: Run) -> None:
        self._probe.note(self._probe.state(run).gradients("before_update"))

    def after_update(self, run: Run) -> None:
        state = self._probe.state(run)
        self._probe.note(state.weights("update"))
        self._probe.note(state.optimizers("update"))


class _After(LooksOnly):
    """Looks after all other hooks of a point."""

    name = "probe_after"
    priority = Priority.LOWEST

    def __init__(self, probe: Probe) -> None:
        self._probe = probe

    def before_forward(self, run: Run) -> None:
        if self._probe.is_open and run.phase == "train":
            state = self._probe.state(run)
            for lines in (state.generators, state.weights, state.buffers, state.settings):
                self._probe.note(lines("before_forward"))
            self._probe.note(_line("before_forward", "batch", "batch", run.batch))

    def after_forward(self, run: Run) -> None:
        self._probe.note(_line("after_forward", "output", "output", run.output))

    def after_loss(self, run: Run) -> None:
        self._probe.note(_line("after_loss", "loss", "loss", run.loss))

    def before_update(self, run: Run) -> None:
        state = self._probe.state(run)
        self._probe.note(state.gradients("after_before_update"))
        self._probe.note(state.weights("after_before_update"))
        self._probe.note(state.optimizers("after_before_update"))

    def after_train_iter(self, run: Run) -> None:
        self._probe.end(run)

    def on_exception(self, run: Run, error: BaseException) -> None:
        self._probe.close()

    def after_train(self, run: Run) -> None:
        self._probe.close()


# --- what each hook writes ------------------------------------------------------------------------


class Firing(NamedTuple):
    """One call of a hook.

    Attributes:
        iter: The iterations completed.
        point: The mount point.
        hook: The hook's name.
        before: The digests before it, by kind and name.
        after: Those after it.
    """

    iter: int
    point: str
    hook: str
    before: Mapping[tuple[str, str], str]
    after: Mapping[tuple[str, str], str]

    @property
    def wrote(self) -> list[tuple[str, str]]:
        """The kinds and names of what it changed."""
        names = dict.fromkeys([*self.before, *self.after])
        return [name for name in names if self.before.get(name) != self.after.get(name)]


_BEFORE_ALL = ("before_run", "after_load_checkpoint", "before_save_checkpoint")
_WITHIN = {point.name for point in POINTS if point.is_busy}


class HookProbe(LooksOnly):
    """Takes digests before and after every call of every hook, and so names who changed what.

    Args:
        take: Gets each call.
        first: The first iteration that is looked at, with what comes right before it.
        last: The last one.
        leave_out: Hooks whose state is left out.
    """

    name = "hook_probe"
    priority = Priority.HIGHEST

    def __init__(
        self,
        take: Callable[[Firing], object],
        *,
        first: int,
        last: int,
        leave_out: Callable[[Hook], bool] = lambda hook: False,
    ) -> None:
        self._take = take
        self._first, self._last = first, last
        self._leave_out = leave_out

    def before_run(self, run: Run) -> None:
        """Wrap every call from now on."""
        run._plan.wrap(self._wrapped)

    def _wrapped(self, call: Call, hook: Hook, point: str) -> Call:
        if isinstance(hook, LooksOnly):
            return call

        def looked_at(run: Run, *args: object) -> None:
            # What hooks do after the iteration before it is there when it begins.
            is_near = self._first - 1 <= run.progress.iter <= self._last
            if not is_near or point in _BEFORE_ALL or (run.phase != "train" and point in _WITHIN):
                call(run, *args)
                return
            done, before = run.progress.iter, self._digests(run, hook)
            try:
                call(run, *args)
            finally:
                after = self._digests(run, hook)
                self._take(Firing(done, point, hook.name, before, after))

        return looked_at

    def _digests(self, run: Run, hook: Hook) -> dict[tuple[str, str], str]:
        state = StateLines(run, self._leave_out)
        is_lent = hook.draws_random_numbers and not hook.takes_part_in_training
        return {
            (line.kind, line.name): line.digest
            for line in (*state.whole(""), *state.moment(""))
            # A hook that only observes is lent random numbers.
            if not (is_lent and line.kind == "generator")
        }
