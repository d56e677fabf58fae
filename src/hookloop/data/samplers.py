"""The state of index samplers, and random numbers that are theirs alone.

A pass is continued by drawing its order again from where it began. For torch's own samplers the
generators are enough. One that a user wrote may keep things of its own, such as a count of epochs
or the losses of its samples, and may draw random numbers as it goes, between those that the model
draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, runtime_checkable

from torch.utils.data import DataLoader

from hookloop.data.generators import access_all
from hookloop.data.kept import GENERATORS, NOTHING, give_back, is_same, keep
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
    """What samplers keep: their ``state_dict``, or those of their attributes that changed.

    Args:
        samplers: As they were built.
    """

    def __init__(self, samplers: Sequence[object]) -> None:
        self._samplers = [one for one in samplers if not is_of_torch(one)]
        self._built = [{} if isinstance(one, Stateful) else _held(one) for one in self._samplers]

    def now(self) -> State:
        """Return what differs from how they were built; empty if no sampler is a user's own."""
        return [
            one.state_dict() if isinstance(one, Stateful) else _moved(built, _held(one))
            for one, built in zip(self._samplers, self._built, strict=True)
        ]

    def generators(self) -> list[object]:
        """Return the generators that are kept, being attributes of a sampler."""
        return [
            value
            for one in self._samplers
            for value in getattr(one, "__dict__", {}).values()
            if isinstance(value, GENERATORS)
        ]

    def restore(self, states: State) -> None:
        """Go back to what `now` returned."""
        for one, built, state in zip(self._samplers, self._built, states, strict=False):
            if isinstance(one, Stateful):
                one.load_state_dict(state)
            else:
                held = vars(one) if hasattr(one, "__dict__") else {}
                for name, kept in {**built, **state}.items():
                    held[name] = give_back(held.get(name), kept)


def is_of_torch(sampler: object) -> bool:
    """Return whether a sampler is torch's own, which draws the order of a pass at its beginning."""
    return type(sampler).__module__.startswith("torch.")


def _held(holder: object) -> dict[str, object]:
    held = {name: keep(one) for name, one in getattr(holder, "__dict__", {}).items()}
    return {name: one for name, one in held.items() if one is not NOTHING}


def _moved(built: Mapping[str, object], now: Mapping[str, object]) -> dict[str, object]:
    return {n: one for n, one in now.items() if n not in built or not is_same(built[n], one)}


class OwnRandomness:
    """A context in which Python's, NumPy's and torch's generators continue where they last were.

    Those of GPUs are left out: no sampler draws from them, and to read them would wait for the GPU.

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
        self._ways = access_all()
        self._outside: tuple[Any, Any, Any] = ((), (), ())
        before = [way.take() for way in self._ways]
        seed_process(seed)
        python, numpy, torchs = self._ways
        self._inside = python.take(), numpy.take(), torchs.take()
        for way, taken in zip(self._ways, before, strict=True):
            way.put(taken)

    def state_dict(self) -> dict[str, object]:
        """Return where the generators are inside."""
        with self:
            return Randomness.now(gpus=False).state

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Continue inside from what `state_dict` returned."""
        with self:
            Randomness(state).restore()

    def __enter__(self) -> None:
        python, numpy, torchs = self._ways
        inside = self._inside
        self._outside = python.take(), numpy.take(), torchs.take()
        python.put(inside[0])
        numpy.put(inside[1])
        torchs.put(inside[2])

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        python, numpy, torchs = self._ways
        outside = self._outside
        self._inside = python.take(), numpy.take(), torchs.take()
        python.put(outside[0])
        numpy.put(outside[1])
        torchs.put(outside[2])
