"""The state of index samplers.

A pass continues by drawing its order again, as at its start. For torch's own samplers the
generators are enough for that. A user's own sampler may have attributes, such as a count of epochs
or the losses of its samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from torch.utils.data import DataLoader

from hookloop.objects.values import (
    GENERATOR_TYPES,
    NO_STATE,
    is_equal,
    restore_state,
    to_state,
)

State = list[dict[str, object]]


@runtime_checkable
class Stateful(Protocol):
    """A loader or sampler that keeps its own position."""

    def state_dict(self) -> dict[str, object]:
        """Return the position."""

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Go to a position; the next pass continues there."""


def samplers_of(loader: DataLoader[object]) -> list[object]:
    """List the samplers of a loader, each once."""
    batches = loader.batch_sampler
    held = (loader.sampler, batches, getattr(batches, "sampler", None))
    return list({id(one): one for one in held if one is not None}.values())


class SamplerStates:
    """The state of samplers: their ``state_dict``, or those of their attributes that changed.

    Args:
        samplers: The samplers, as they were built.
    """

    def __init__(self, samplers: Sequence[object]) -> None:
        self._samplers = [sampler for sampler in samplers if not is_of_torch(sampler)]
        self._built = [{} if isinstance(s, Stateful) else _attributes(s) for s in self._samplers]

    def now(self) -> State:
        """Return what differs from how they were built; empty if all samplers are torch's."""
        # Only what changed: a sampler may hold an attribute for each of its samples.
        return [
            sampler.state_dict()
            if isinstance(sampler, Stateful)
            else _changed(built, _attributes(sampler))
            for sampler, built in zip(self._samplers, self._built, strict=True)
        ]

    def whole(self) -> State:
        """Return the whole state, which `restore` can set in another process."""
        return [
            sampler.state_dict() if isinstance(sampler, Stateful) else _attributes(sampler)
            for sampler in self._samplers
        ]

    def generators(self) -> list[object]:
        """Return the generators that are attributes of a sampler, and so part of its state."""
        return [
            value
            for sampler in self._samplers
            for value in getattr(sampler, "__dict__", {}).values()
            if isinstance(value, GENERATOR_TYPES)
        ]

    def restore(self, states: State) -> None:
        """Restore what `now` returned."""
        for sampler, built, state in zip(self._samplers, self._built, states, strict=False):
            if isinstance(sampler, Stateful):
                sampler.load_state_dict(state)
            else:
                attributes = vars(sampler) if hasattr(sampler, "__dict__") else {}
                for name, saved in {**built, **state}.items():
                    attributes[name] = restore_state(attributes.get(name), saved)


def is_of_torch(sampler: object) -> bool:
    """Return whether a sampler is torch's own, which draws the order when a pass starts."""
    return type(sampler).__module__.startswith("torch.")


def _attributes(holder: object) -> dict[str, object]:
    states = {name: to_state(value) for name, value in getattr(holder, "__dict__", {}).items()}
    return {name: state for name, state in states.items() if state is not NO_STATE}


def _changed(built: Mapping[str, object], now: Mapping[str, object]) -> dict[str, object]:
    return {n: state for n, state in now.items() if n not in built or not is_equal(built[n], state)}
