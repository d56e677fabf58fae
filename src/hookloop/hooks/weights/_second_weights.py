"""`SecondWeights`, the weights that `AverageWeights` averages and evaluates with.

The arithmetic on lists of tensors is kept apart from the hook, which decides when it happens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from hookloop.checkpoint.shards.dtensors import is_sharded, local_part, spread
from hookloop.errors import CheckpointError
from hookloop.hooks._many_tensors import copy_all, lerp_all


class SecondWeights:
    """A second copy of a model's floating-point tensors, which can be swapped in and out.

    Args:
        model: The model; it keeps its own tensors, only their numbers change.
        buffers: Whether buffers belong to the set.
        device: Where the second set is kept, if not beside the first.

    >>> model = nn.Linear(1, 1, bias=False)
    >>> second = SecondWeights(model)
    >>> with torch.no_grad():
    ...     model.weight += 1
    >>> second.blend(0.5)
    >>> torch.allclose(model.weight, second.numbers[0] + 0.5)
    True
    """

    def __init__(
        self, model: nn.Module, *, buffers: bool = False, device: str | None = None
    ) -> None:
        # With duplicates, because a state dict holds tied weights under each of their names.
        held: dict[str, Tensor] = dict(model.named_parameters(remove_duplicate=False))
        # Buffers come from the state dict, which leaves out those that are not persistent.
        state = model.state_dict(keep_vars=True)
        if buffers:
            held |= {name: tensor for name, tensor in state.items() if name not in held}
        # A counter such as num_batches_tracked has no mean.
        held = {name: tensor for name, tensor in held.items() if tensor.is_floating_point()}
        self.live = list({id(tensor): tensor for tensor in held.values()}.values())
        indices = {id(tensor): index for index, tensor in enumerate(self.live)}
        # Tied weights have several names and one index.
        self.names = {name: indices[id(tensor)] for name, tensor in held.items()}
        # In single precision at least: a small share of a half-precision number would be lost.
        self.numbers = [
            live.detach().to(device, torch.promote_types(live.dtype, torch.float32), copy=True)
            for live in self.live
        ]
        # Of a sharded model, the parts of this rank are averaged, each with its own.
        self._is_sharded = any(map(is_sharded, self.live))
        self._parts = list(map(local_part, self.numbers))
        self._has_same_types = all(
            own.dtype == live.dtype and own.device == live.device
            for own, live in zip(self.numbers, self.live, strict=True)
        )
        self._views = [local_part(tensor.detach()) for tensor in self.live]
        self._first: list[Tensor] | None = None
        parameters = {id(parameter) for parameter in model.parameters()}
        self.buffers = [i for i, one in enumerate(self.live) if id(one) not in parameters]
        """Which of them are buffers."""

    def blend(self, share: float) -> None:
        """Move the second set towards the first by a share of the distance; 1 copies."""
        if self._has_same_types:
            # Views without gradients save a check per tensor. They are made again if the model
            # was moved to other memory.
            if not self._is_sharded and self._views[0].data_ptr() != self.live[0].data_ptr():
                self._views = [tensor.detach() for tensor in self.live]
            live = self._views
        else:
            pairs = zip(self._parts, map(local_part, self.live), strict=True)
            live = [tensor.detach().to(own.device, own.dtype) for own, tensor in pairs]
        # The lists are kept between updates: torch.optim.swa_utils.AveragedModel gathers and groups
        # its lists at each update, which takes four to six times as long as the update itself.
        if share == 1:
            copy_all(self._parts, live)
        else:
            lerp_all(self._parts, live, share)

    @property
    def is_in(self) -> bool:
        """Whether the model currently has the second set's numbers."""
        return self._first is not None

    def swap_in(self) -> None:
        """Give the model the second set's numbers; do nothing if it has them."""
        if self._first is None:
            # Numbers are copied, tensors are not exchanged: the optimizer's state and compiled or
            # wrapped models refer to the tensors.
            self._first = [tensor.detach().clone() for tensor in self.live]
            with torch.no_grad():
                copy_all(self._live_parts(), self._parts)

    def swap_out(self) -> None:
        """Give the model its own numbers back, bit for bit; do nothing if it has them."""
        if self._first is not None:
            with torch.no_grad():
                copy_all(self._live_parts(), list(map(local_part, self._first)))
            self._first = None

    def _live_parts(self) -> list[Tensor]:
        return [local_part(tensor.detach()) for tensor in self.live]

    def first(self) -> dict[str, Tensor]:
        """Return the model's own numbers by name, also while the second set is swapped in."""
        return {name: (self._first or self.live)[index] for name, index in self.names.items()}

    def second(self) -> dict[str, Tensor]:
        """Return the second set by name, in the model's own precision."""
        return {
            name: self.numbers[index].to(self.live[index].dtype)
            for name, index in self.names.items()
        }

    def second_buffers(self) -> list[Tensor]:
        """Return the second set's buffers."""
        return [self.numbers[index] for index in self.buffers]

    def load_second_buffers(self, buffers: Sequence[Tensor]) -> None:
        """Take back what `second_buffers` returned."""
        for own, saved in zip(self.second_buffers(), buffers, strict=True):
            own.copy_(saved)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the second set by name, in its own precision."""
        return {name: self.numbers[index] for name, index in self.names.items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take back what `state_dict` returned."""
        fits = {
            name
            for name, tensor in state.items()
            if name in self.names and self._fits(name, tensor)
        }
        # Checked before anything is copied, so that a rejected state changes nothing.
        if fits != {*state, *self.names}:
            differing = ", ".join(sorted(map(str, {*state, *self.names} - fits))[:5])
            raise CheckpointError(
                f"The averaged weights of the checkpoint do not fit the model: {differing}."
            )
        for name, index in self.names.items():
            own = self.numbers[index]
            local_part(own).copy_(local_part(spread(state[name], own)))

    def _fits(self, name: str, tensor: Tensor) -> bool:
        return tensor.shape == self.numbers[self.names[name]].shape
