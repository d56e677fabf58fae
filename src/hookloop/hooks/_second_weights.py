"""A second set of a model's weights, which can take the place of the first for a while."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from hookloop.errors import CheckpointError


class SecondWeights:
    """The floating-point tensors of a model, and as many of one's own.

    Args:
        model: Whose weights; it keeps its own tensors, only their numbers change.
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
        held: dict[str, Tensor] = dict(model.named_parameters(remove_duplicate=False))
        state = model.state_dict(keep_vars=True)
        if buffers:
            held |= {name: one for name, one in state.items() if name not in held}
        held = {name: one for name, one in held.items() if one.is_floating_point()}
        self.live = list({id(one): one for one in held.values()}.values())
        places = {id(one): place for place, one in enumerate(self.live)}
        # Tied weights have several names and one place.
        self.names = {name: places[id(one)] for name, one in held.items()}
        # In single precision at least: a small share of a half-precision number would be lost.
        self.numbers = [
            one.detach().to(device, torch.promote_types(one.dtype, torch.float32), copy=True)
            for one in self.live
        ]
        self._is_alike = all(
            own.dtype == one.dtype and own.device == one.device
            for own, one in zip(self.numbers, self.live, strict=True)
        )
        self._views = [one.detach() for one in self.live]
        self._first: list[Tensor] | None = None

    def blend(self, share: float) -> None:
        """Move the second set towards the first, by a share of the way; 1 copies."""
        if self._is_alike:
            # Views without gradients spare a check per tensor; they are taken anew when the model
            # was given other memory.
            if self._views[0].data_ptr() != self.live[0].data_ptr():
                self._views = [one.detach() for one in self.live]
            live = self._views
        else:
            pairs = zip(self.numbers, self.live, strict=True)
            live = [one.detach().to(own.device, own.dtype) for own, one in pairs]
        # On lists that are kept: torch.optim.swa_utils.AveragedModel gathers and groups its lists
        # anew at each update, which takes four to six times as long as the update itself.
        if share == 1:
            torch._foreach_copy_(self.numbers, live)
        else:
            torch._foreach_lerp_(self.numbers, live, share)

    @property
    def is_in(self) -> bool:
        """Whether the model has the second set's numbers just now."""
        return self._first is not None

    def swap_in(self) -> None:
        """Give the model the second set's numbers, once."""
        if self._first is None:
            self._first = [one.detach().clone() for one in self.live]
            with torch.no_grad():
                torch._foreach_copy_(self.live, self.numbers)

    def swap_out(self) -> None:
        """Give the model its own numbers back, bit by bit; nothing if it has them."""
        if self._first is not None:
            with torch.no_grad():
                torch._foreach_copy_(self.live, self._first)
            self._first = None

    def first(self) -> dict[str, Tensor]:
        """Return the model's own numbers by name, whichever it has just now."""
        return {name: (self._first or self.live)[place] for name, place in self.names.items()}

    def second(self) -> dict[str, Tensor]:
        """Return the second set by name, in the model's own precision."""
        return {
            name: self.numbers[place].to(self.live[place].dtype)
            for name, place in self.names.items()
        }

    def state_dict(self) -> dict[str, Tensor]:
        """Return the second set by name."""
        return {name: self.numbers[place] for name, place in self.names.items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take back what `state_dict` returned."""
        fits = {name for name, one in state.items() if name in self.names and self._fits(name, one)}
        if fits != {*state, *self.names}:
            differing = ", ".join(sorted(map(str, {*state, *self.names} - fits))[:5])
            raise CheckpointError(
                f"The averaged weights of the checkpoint do not fit the model: {differing}."
            )
        for name, place in self.names.items():
            self.numbers[place].copy_(state[name])

    def _fits(self, name: str, tensor: Tensor) -> bool:
        return tensor.shape == self.numbers[self.names[name]].shape
