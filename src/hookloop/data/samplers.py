"""The state of index samplers, and random numbers that are theirs alone.

A pass is continued by drawing its order again from where it began. For torch's own samplers the
generators are enough. One that a user wrote may keep numbers of its own, such as a count of epochs,
and may draw random numbers as it goes, between those that the model draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Protocol, runtime_checkable

from torch.utils.data import DataLoader

from hookloop.data.randomness import Randomness
from hookloop.data.seeding import seed_process

State = list[dict[str, object]]


@runtime_checkable
class Stateful(Protocol):
    """What knows its own position: a loader, or a sampler."""

    def state_dict(self) -> dict[str, object]:
        """Return the position."""

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Go to a position; the next pass continues from there."""


def samplers_of(loader: DataLoader[object]) -> list[object]:
    """List the samplers of a loader, each once."""
    batches = loader.batch_sampler
    held = (loader.sampler, batches, getattr(batches, "sampler", None))
    return list({id(one): one for one in held if one is not None}.values())


class SamplerStates:
    """What samplers keep besides generators: their ``state_dict``, or the numbers that moved.

    Args:
        samplers: As they were built.
    """

    def __init__(self, samplers: Sequence[object]) -> None:
        self._samplers = [one for one in samplers if not is_of_torch(one)]
        self._built = [_numbers(one) for one in self._samplers]

    def now(self) -> State:
        """Return what differs from how they were built; empty if no sampler is a user's own."""
        return [
            one.state_dict() if isinstance(one, Stateful) else _moved(built, _numbers(one))
            for one, built in zip(self._samplers, self._built, strict=True)
        ]

    def restore(self, states: State) -> None:
        """Go back to what `now` returned."""
        for one, built, state in zip(self._samplers, self._built, states, strict=False):
            if isinstance(one, Stateful):
                one.load_state_dict(state)
            else:
                vars(one).update({**built, **state})


def is_of_torch(sampler: object) -> bool:
    """Tell whether a sampler is torch's own, which draws the order of a pass at its beginning."""
    return type(sampler).__module__.startswith("torch.")


def _numbers(holder: object) -> dict[str, object]:
    held = getattr(holder, "__dict__", {})
    return {name: one for name, one in held.items() if type(one) in (bool, int, float, str)}


def _moved(built: Mapping[str, object], now: Mapping[str, object]) -> dict[str, object]:
    return {n: one for n, one in now.items() if n not in built or built[n] != one}


class OwnRandomness:
    """A context in which Python's, NumPy's and torch's generators go on where they last were in it.

    >>> import random
    >>> own = OwnRandomness(3)
    >>> with own:
    ...     first = random.random()
    >>> with own:
    ...     second = random.random()
    >>> random.seed(3)
    >>> (first, second) == (random.random(), random.random())
    True
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._inside: Randomness | None = None
        self._outside = Randomness({})

    def __enter__(self) -> None:
        # Without those of GPUs, from which no sampler draws: to read them would wait for the GPU.
        self._outside = Randomness.now(gpus=False)
        if self._inside is None:
            seed_process(self._seed)
        else:
            self._inside.restore()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._inside = Randomness.now(gpus=False)
        self._outside.restore()
