"""The gradients of one update, summed over logical ranks: the same bits on any number of processes.

Each logical rank computes its part of the global batch from the same buffers, and the gradients
are added in the order of one tree. Afterwards every process has the buffers of logical rank 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from hookloop.errors import ModelError
from hookloop.parallel.replicated import check_count, weigh
from hookloop.parallel.tree import Partial, cover, sum_over_processes

if TYPE_CHECKING:
    from hookloop.parallel.world import World

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
        self._covers = [cover(*world.leaves_of(rank)) for rank in range(world.size)]
        self._finds_unused = finds_unused
        self._slots = slots
        self._trained: list[Tensor] = []
        self._waiting: list[Tensor | None] = []
        self._partials: dict[torch.dtype, Partial[Tensor]] = {}
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
        self._trained = [one for one in dict.fromkeys(parameters) if one.requires_grad]
        self._waiting = [one.grad for one in self._trained]
        self._partials = {}
        self._before = [
            (module, name, buffer, buffer.detach().clone())
            for root in self._modules
            for module in root.modules()
            for name, buffer in module._buffers.items()
            if buffer is not None
        ]
        self._kept, self._leaf = None, None

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
        sums = {
            kind: sum_over_processes(
                dict(zip(partial.nodes, partial.values, strict=True)),
                self._covers,
                self._world.rank,
                self._world.logical,
            )
            for kind, partial in self._partials.items()
        }
        with_flags = sums[torch.float32]
        used = [True] * len(self._trained)
        if self._finds_unused:
            flags = len(with_flags) - len(used)
            used = [one > 0 for one in with_flags[flags:].tolist()]
            with_flags = with_flags[:flags]
        self.mean_numbers = with_flags[len(with_flags) - self._slots :]
        places = dict.fromkeys(sums, 0)
        for parameter, waiting, is_used in zip(self._trained, self._waiting, used, strict=True):
            first = places[parameter.dtype]
            places[parameter.dtype] = first + parameter.numel()
            gradient = sums[parameter.dtype][first : places[parameter.dtype]].view_as(parameter)
            if waiting is not None:
                parameter.grad = waiting + gradient if is_used else waiting
            else:
                parameter.grad = gradient if is_used else None
        self._partials, self._waiting, self._before = {}, [], []

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
        flat: dict[torch.dtype, list[Tensor]] = {torch.float32: []}
        is_used = []
        for parameter in self._trained:
            gradient = parameter.grad
            is_used.append(gradient is not None)
            if gradient is None:
                gradient = torch.zeros_like(parameter)
            elif gradient.is_sparse:
                raise ModelError(
                    "A sparse gradient cannot be summed over logical ranks: use dense embeddings, "
                    "or leave parallel: {logical: ...} out.",
                    argument="parallel",
                )
            flat.setdefault(parameter.dtype, []).append(gradient.reshape(-1))
            parameter.grad = None
        flat[torch.float32].append(self._numbers)
        if self._finds_unused:
            flat[torch.float32].append(self._numbers.new_tensor([float(one) for one in is_used]))
        elif not all(is_used):
            raise ModelError(
                f"The loss does not depend on {is_used.count(False)} of the parameters that are "
                "trained. Write parallel={'unused_parameters': True} if that is intended, or "
                "leave these parameters out of the optimizer.",
                argument="parallel",
            )
        for kind, parts in flat.items():
            partial = self._partials.setdefault(kind, Partial(torch.Tensor.add_))
            partial.append(self._leaf, torch.cat(parts))
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
