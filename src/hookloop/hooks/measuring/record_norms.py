"""`RecordNorms`: record the norms of gradients, weights, updates and activations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor, nn

from hookloop.checkpoint.shards.dtensors import is_sharded, local_part
from hookloop.data.portable import named_tensors
from hookloop.engine.hook import Hook, Priority
from hookloop.errors import HookError, nearest
from hookloop.every import Every
from hookloop.hooks._intervals import interval_of
from hookloop.hooks._many_tensors import norms_of
from hookloop.parallel.sharded import copies_of

if TYPE_CHECKING:
    from torch.utils.hooks import RemovableHandle

    from hookloop.engine.run import Run

KINDS = ("grad", "weight", "update", "activation")
Kind = Literal["grad", "weight", "update", "activation"]


class RecordNorms(Hook):
    """Record ``norms/<kind>/<name>`` for each parameter or module, and ``norms/<kind>`` for all.

    Gradients are those before clipping. An update is the change of a weight in the iteration. An
    activation is what a module without children returns, for the last microbatch; on many ranks,
    for the parts of all ranks. Norms are computed only in the iterations of the interval, stay on
    the device, and are read together with the other metrics. Console and ``run.log`` show only the
    norms over everything. Modules that ``torch.compile`` has captured show no activations.

    Args:
        of: Which of ``"grad"``, ``"weight"``, ``"update"`` and ``"activation"``.
        patterns: Names or ``fnmatch`` patterns of parameters and, for activations, of modules; all
            by default.
        every: Interval, in iterations.

    Example:
        >>> RecordNorms(of=["grad", "update"], patterns=["head.*"]).writes
        ('norms/*',)
    """

    writes = ("norms/*",)
    priority = Priority.ABOVE_NORMAL  # Before hooks that clip the gradients.
    draws_random_numbers = False

    def __init__(
        self,
        of: Sequence[Kind] = ("grad", "weight", "update"),
        patterns: Sequence[str] = ("*",),
        every: Every | int | str = 100,
    ) -> None:
        for kind in of:
            if kind not in KINDS:
                raise HookError(
                    f"RecordNorms: of={kind!r}: write some of {', '.join(KINDS)}."
                    f"{nearest(str(kind), KINDS)}"
                )
        if isinstance(of, str) or isinstance(patterns, str) or not of or not patterns:
            raise HookError("RecordNorms: of= and patterns= are lists with at least one entry.")
        self.of = tuple(of)
        self.patterns = tuple(patterns)
        self.every = interval_of(self, every)
        if self.every.unit != "iters":
            raise HookError(f"RecordNorms: give iterations, not '{self.every}'.")
        self._weights: dict[str, nn.Parameter] = {}
        self._modules: dict[str, nn.Module] = {}
        self._before: dict[str, Tensor] = {}
        self._norms: dict[Kind, dict[str, Tensor]] = {}
        self._handles: list[RemovableHandle] = []

    def before_train(self, run: Run) -> None:
        leaves = {n: m for n, m in run.model.named_modules() if next(m.children(), None) is None}
        self._weights = {n: p for n, p in run.model.named_parameters() if self._chooses(n)}
        self._modules = {n: m for n, m in leaves.items() if self._chooses(n)}
        needs = {"grad", "weight", "update"} & set(self.of)
        if (needs and not self._weights) or ("activation" in self.of and not self._modules):
            names = [name for name, _ in run.model.named_parameters()] if needs else list(leaves)
            raise HookError(
                f"RecordNorms: nothing matches {', '.join(self.patterns)}."
                f"{nearest(self.patterns[0], names) or ' There are: ' + ', '.join(names[:8]) + '.'}"
            )

    def before_train_iter(self, run: Run) -> None:
        self._norms = {}
        if "update" in self.of:
            parts = {n: local_part(p.detach()) for n, p in self._weights.items() if p.requires_grad}
            self._before = {name: part.clone() for name, part in parts.items()}
        if "activation" in self.of:
            for name, module in self._modules.items():
                self._handles.append(module.register_forward_hook(self._note(name)))

    def before_update(self, run: Run) -> None:
        if "grad" in self.of:  # Several updates of an iteration: the last one of each counts.
            found = {n: p.grad for n, p in self._weights.items() if p.grad is not None}
            self._norms.setdefault("grad", {}).update(_norms(found))

    def after_train_iter(self, run: Run) -> None:
        self._release()
        if "weight" in self.of:
            self._norms["weight"] = _norms({n: p.detach() for n, p in self._weights.items()})
        if before := self._before:
            after = {name: local_part(self._weights[name].detach()) for name in before}
            self._norms["update"] = _norms({name: after[name] - before[name] for name in before})
            self._before = {}
        is_cut = any(map(is_sharded, self._weights.values()))
        for kind in self.of:
            # The same names on each rank, also on one whose part of the batch is empty.
            names = self._modules if kind == "activation" else self._weights
            of_names = self._norms.get(kind, {})
            if of_names or not run.world.is_alone:
                is_shared = not run.world.is_alone and (is_cut or kind == "activation")
                self._put(run, kind, list(names), of_names, is_shared=is_shared)
        self._norms = {}

    def after_run(self, run: Run) -> None:
        self._release()
        self._before, self._norms, self._weights, self._modules = {}, {}, {}, {}

    def _put(
        self,
        run: Run,
        kind: Kind,
        names: list[str],
        found: Mapping[str, Tensor],
        *,
        is_shared: bool,
    ) -> None:
        """Put the norms of one kind; shared ones are those of parts, which ranks add up."""
        zero = torch.zeros((), device=run.device)
        squares = torch.stack([found.get(name, zero).to(zero).square() for name in names])
        if is_shared:
            # What several ranks have is counted once.
            size, world = run.world.size, run.world
            is_activation = kind == "activation"
            copies = [
                world.tensor if is_activation else copies_of(self._weights[name], size)
                for name in names
            ]
            squares = run.reduce(squares / squares.new_tensor(copies), "sum")
        run.metrics.put(f"norms/{kind}", squares.sum().sqrt())
        for name, norm in zip(names, squares.sqrt().unbind(), strict=True):
            if is_shared or name in found:  # A parameter without a gradient has no norm of it.
                run.metrics.put(f"norms/{kind}/{name}", norm)

    def _note(self, name: str) -> Callable[[nn.Module, object, object], None]:
        def note(module: nn.Module, inputs: object, output: object) -> None:
            if not module.training:  # A validation within the iteration is none of ours.
                return
            tensors = [t.detach() for _, t in named_tensors(output, name) if t.is_floating_point()]
            if tensors:
                norms = norms_of([local_part(tensor) for tensor in tensors], 2)
                together = torch.stack([norm.float() for norm in norms]).norm()
                self._norms.setdefault("activation", {})[name] = together

        return note

    def _release(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _chooses(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self.patterns)


def _norms(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the norm of this rank's part of each tensor, all in one operation."""
    parts = {name: part for name, t in tensors.items() if (part := local_part(t)).numel()}
    norms = norms_of(list(parts.values()), 2) if parts else []
    return dict(zip(parts, norms, strict=True))
