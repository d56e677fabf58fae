"""The gradients of one update, summed over logical ranks: the same bits on any number of processes.

Each logical rank computes its part of the global batch from the same buffers, and the gradients
are added in the order of one tree. Afterwards every process has the buffers of logical rank 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from hookloop.errors import ModelError
from hookloop.parallel.replicated import check_count, weigh
from hookloop.parallel.tree import Partial, TreeSum, cover

if TYPE_CHECKING:
    from hookloop.parallel.world import World


class _Flat:
    """The gradients of one type in one piece of memory, with a view of it for each of them."""

    def __init__(self, shapes: Sequence[torch.Size], like: Tensor) -> None:
        sizes = [shape.numel() for shape in shapes]
        self.whole = torch.empty(sum(sizes), dtype=like.dtype, device=like.device)
        parts = torch.split(self.whole, sizes)
        self.parts = [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]


class _Sums:
    """The gradients of one type, summed over logical ranks.

    Args:
        shapes: Those of the gradients.
        like: A tensor of their type and device.
        world: This process, its logical ranks, and all others.
    """

    def __init__(self, shapes: Sequence[torch.Size], like: Tensor, world: World) -> None:
        self._shapes, self._like = shapes, like
        covers = [cover(*world.leaves_of(rank)) for rank in range(world.size)]
        self._tree = TreeSum(covers, world.rank, world.logical)
        self._free: list[_Flat] = []
        self._used: list[_Flat] = []
        self._partial = Partial(self._add)

    def append(self, leaf: int, gradients: Sequence[Tensor | None]) -> None:
        """Add the gradients of the next logical rank; a missing one counts as zero."""
        partial = self._partial
        partial.append(leaf, gradients)
        if (last := partial.values[-1]) is gradients:  # There is nothing yet to add them to.
            partial.values[-1] = into = self._take()
            _combine(into.parts, last, torch._foreach_copy_, Tensor.zero_)

    def _take(self) -> _Flat:
        flat = self._free.pop() if self._free else _Flat(self._shapes, self._like)
        self._used.append(flat)
        return flat

    def _add(self, left: Any, right: Any) -> _Flat:  # noqa: ANN401 - what `Partial` holds
        if isinstance(right, _Flat):
            left.whole.add_(right.whole)
            self._used.remove(right)
            self._free.append(right)
        else:
            # Zero is added, too, as where the other one comes from another process: -0.0 changes.
            _combine(left.parts, right, torch._foreach_add_, lambda one: one.add_(0.0))
        return cast("_Flat", left)

    def finish(self) -> list[Tensor]:
        """Return the sums over all logical ranks; they are valid until the next `append`."""
        partial, self._partial = self._partial, Partial(self._add)
        own = [flat.whole for flat in partial.values]
        total = self._tree.sum(dict(zip(partial.nodes, own, strict=True)))
        self._free += self._used
        self._used = []
        parts = torch.split(total, [shape.numel() for shape in self._shapes])
        return [part.view(shape) for part, shape in zip(parts, self._shapes, strict=True)]


def _combine(
    into: Sequence[Tensor],
    gradients: Sequence[Tensor | None],
    with_all: Callable[[list[Tensor], list[Tensor]], object],
    with_none: Callable[[Tensor], object],
) -> None:
    """Combine tensors with gradients in one call, and with those that are missing in others."""
    pairs = list(zip(into, gradients, strict=True))
    present = [(one, gradient) for one, gradient in pairs if gradient is not None]
    with torch.no_grad():
        if present:
            ones, others = zip(*present, strict=True)
            with_all(list(ones), list(others))
        for one, gradient in pairs:
            if gradient is None:
                with_none(one)


Buffers = list[tuple[nn.Module, str, Tensor, Tensor]]
"""A module, the name of a buffer, its object, and a copy of its values."""


class LogicalAverager:
    """Sums the gradients and numbers of an update over all logical ranks.

    Args:
        modules: Those whose buffers a forward may change.
        parameters: Returns what the update's optimizers step; there may be others later.
        world: This process, its logical ranks, and all others.
        finds_unused: Whether a loss may leave out parameters.
        slots: How many numbers travel with the gradients.
    """

    has_parts = False
    """Each process has whole gradients."""

    def __init__(
        self,
        modules: Sequence[nn.Module],
        parameters: Callable[[], Sequence[Tensor]],
        world: World,
        *,
        finds_unused: bool,
        slots: int,
    ) -> None:
        self._modules = modules
        self._parameters = parameters
        self._device = parameters()[0].device
        self._count = 0
        self._world = world
        self._finds_unused = finds_unused
        self._slots = slots
        self._trained: list[Tensor] = []
        self._waiting: list[Tensor | None] = []
        self._sums: dict[torch.dtype, _Sums] = {}
        self._before: Buffers = []
        self._kept: list[Tensor] | None = None
        self._leaf: int | None = None
        self._numbers = torch.zeros(slots)
        self.mean_numbers = self._numbers

    # --- one update -------------------------------------------------------------------------------

    def clear(self) -> None:
        """Begin an update; gradients that wait from earlier ones are added at its end."""
        parameters = self._parameters()
        self._count = len(parameters)
        trained = [one for one in dict.fromkeys(parameters) if one.requires_grad]
        if len(trained) != len(self._trained) or any(
            one is not before for one, before in zip(trained, self._trained, strict=True)
        ):
            self._trained = trained
            self._make_sums()
        # What waits may lie in memory that is used again now.
        self._waiting = [None if one.grad is None else one.grad.clone() for one in trained]
        self._before = [
            (module, name, buffer, buffer.detach().clone())
            for root in self._modules
            for module in root.modules()
            for name, buffer in module._buffers.items()
            if buffer is not None
        ]
        self._kept, self._leaf = None, None

    def _make_sums(self) -> None:
        """Get memory for the gradients, and for the numbers that travel with them."""
        shapes: dict[torch.dtype, list[torch.Size]] = {torch.float32: []}
        for parameter in self._trained:
            shapes.setdefault(parameter.dtype, []).append(parameter.shape)
        shapes[torch.float32].append(torch.Size([self._slots]))
        if self._finds_unused:
            shapes[torch.float32].append(torch.Size([len(self._trained)]))
        self._sums = {
            kind: _Sums(of_kind, torch.empty(0, dtype=kind, device=self._device), self._world)
            for kind, of_kind in shapes.items()
        }

    def start_leaf(self, leaf: int) -> None:
        """Begin the part of one logical rank."""
        self._end_leaf()
        if leaf != self._world.leaves[0]:
            self._restore_buffers()
        self._leaf = leaf
        self._numbers = torch.zeros(self._slots, device=self._device)
        for parameter in self._trained:
            parameter.grad = None

    def start(self, *, synchronizes: bool) -> None:
        """Begin a microbatch; nothing is sent before `finish`."""

    def forward(self, compute: Callable[[Any], Tensor | None], run: object) -> Tensor | None:
        """Compute a loss."""
        return compute(run)

    def backward(
        self, loss: Tensor | None, factor: Tensor | float, numbers: Sequence[Tensor]
    ) -> None:
        """Add the gradients of a loss, and its numbers, both times a factor."""
        self._add_numbers(factor, numbers)
        if loss is not None:
            torch.autograd.backward(loss, torch.as_tensor(factor).to(loss))

    def averaged_loss(
        self, loss: Tensor | None, factor: Tensor | float, numbers: Sequence[Tensor]
    ) -> Tensor | None:
        """Return a loss whose backward does the same, for a backward of the user's own."""
        self._add_numbers(factor, numbers)
        return None if loss is None else loss * factor

    def finish(self) -> None:
        """Sum over all logical ranks: afterwards every process has the whole gradients."""
        self._end_leaf()
        self._share_buffers()
        sums = {kind: iter(one.finish()) for kind, one in self._sums.items()}
        gradients = [next(sums[parameter.dtype]) for parameter in self._trained]
        # Nothing changes it later: the next update gets a tensor of its own.
        self.mean_numbers = next(sums[torch.float32]).clone()
        used = [True] * len(self._trained)
        if self._finds_unused:
            used = [one > 0 for one in next(sums[torch.float32]).tolist()]
        for parameter, gradient, waiting, is_used in zip(
            self._trained, gradients, self._waiting, used, strict=True
        ):
            if waiting is not None:
                parameter.grad = waiting + gradient if is_used else waiting
            else:
                parameter.grad = gradient if is_used else None
        self._waiting, self._before = [], []

    def agree_on_skip(self, is_skipped: bool, iteration: int) -> None:
        """Do nothing: a logical rank that skips an update adds nothing."""

    def check_complete(self) -> None:
        """Reject parameters that are new; the gradients of each part are checked when it ends."""
        check_count(self._parameters(), self._count)

    # --- one logical rank -------------------------------------------------------------------------

    def _add_numbers(self, factor: Tensor | float, numbers: Sequence[Tensor]) -> None:
        if not numbers or (not isinstance(factor, Tensor) and not factor):
            return
        weighted = weigh(numbers, factor)
        self._numbers[: len(weighted)] += weighted

    def _end_leaf(self) -> None:
        """Add the gradients of the current logical rank to those of its subtree."""
        if self._leaf is None:
            return
        gradients: dict[torch.dtype, list[Tensor | None]] = {kind: [] for kind in self._sums}
        is_used = []
        for parameter in self._trained:
            gradient = parameter.grad
            is_used.append(gradient is not None)
            if gradient is not None and gradient.is_sparse:
                raise ModelError(
                    "A sparse gradient cannot be summed over logical ranks: use dense embeddings, "
                    "or leave parallel: {logical: ...} out.",
                    argument="parallel",
                )
            gradients[parameter.dtype].append(gradient)
            parameter.grad = None
        gradients[torch.float32].append(self._numbers)
        if self._finds_unused:
            flags = self._numbers.new_tensor([float(one) for one in is_used])
            gradients[torch.float32].append(flags)
        elif not all(is_used):
            raise ModelError(
                f"The loss does not depend on {is_used.count(False)} of the parameters that are "
                "trained. Write parallel={'unused_parameters': True} if that is intended, or "
                "leave these parameters out of the optimizer.",
                argument="parallel",
            )
        for kind, of_kind in gradients.items():
            self._sums[kind].append(self._leaf, of_kind)
        if self._leaf == 0 and len(self._world.leaves) > 1:
            self._kept = [self._now(entry).detach().clone() for entry in self._before]
        self._leaf = None

    # --- buffers ----------------------------------------------------------------------------------

    @staticmethod
    def _now(entry: tuple[nn.Module, str, Tensor, Tensor]) -> Tensor:
        """Return a buffer as it is now: a module may have another object in its place."""
        module, name, buffer, _ = entry
        now = module._buffers.get(name)
        return buffer if now is None else now

    def _restore_buffers(self) -> None:
        with torch.no_grad():
            for module, name, buffer, value in self._before:
                buffer.copy_(value)
                module._buffers[name] = buffer

    def _share_buffers(self) -> None:
        """Leave on every process the buffers that logical rank 0 has left."""
        now = [self._now(entry) for entry in self._before]
        with torch.no_grad():
            for buffer, value in zip(now, self._kept or (), strict=False):
                buffer.copy_(value)
            if self._world.is_alone:
                return
            import torch.distributed as dist

            by_type: dict[torch.dtype, list[Tensor]] = {}
            for buffer in dict.fromkeys(now):
                by_type.setdefault(buffer.dtype, []).append(buffer)
            for buffers in by_type.values():
                flat = torch.cat([one.reshape(-1) for one in buffers])
                dist.broadcast(flat, src=0)
                parts = torch.split(flat, [one.numel() for one in buffers])
                for one, value in zip(buffers, parts, strict=True):
                    one.copy_(value.view_as(one))
