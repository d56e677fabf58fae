"""Random numbers for hooks that only observe, so that they do not change the training.

While an observer runs, the generators are its own. They are seeded from the key of the run, the
observer's name and the moment, so that a resume repeats its numbers without saving any. Afterwards
the generators are set back to where the training left them.

Seeding takes 10 us, which is too much in every iteration for an observer that never draws. So
frequent observers are seeded at their first call. From then on, only those generators are seeded
that an observer has drawn from; if there are none, the generators are only read before and after.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import torch

from hookloop.data.random.generators import (
    Generator,
    cached_generators,
    device_generators,
    torch_generator,
)


@dataclass(frozen=True)
class ObserverCalls:
    """The observers that are called together at one mount point.

    Attributes:
        name: The mount point.
        is_busy: Whether they are called in every iteration, so that each microsecond counts.
        together: Calls them all.
        each: Calls one of them, by name.
    """

    name: str
    is_busy: bool
    together: Callable[..., object]
    each: Sequence[tuple[str, Callable[..., object]]]

    @cached_property
    def key(self) -> str:
        """The mount point and the names of the observers."""
        # The point alone is not enough: hooks with an interval are called apart from the others.
        return f"{self.name}: {', '.join(name for name, _ in self.each)}"


class ObserverRandomness:
    """Protects the generators of the training from observers.

    >>> from functools import partial
    >>> own = ObserverRandomness()
    >>> generator = torch.manual_seed(1)
    >>> before = generator.get_state()
    >>> draw = partial(torch.rand, 1)
    >>> own.call_observers(ObserverCalls("after_train_iter", True, draw, [("draw", draw)]), when=1)
    >>> torch.equal(generator.get_state(), before)
    True
    """

    def __init__(self) -> None:
        self.key: int | None = None
        """What all seeds are derived from; None until it is needed."""
        self._is_active = False
        self._of_devices: list[Generator] = []
        self._of_loaders: list[Generator] = []
        self._drawn: dict[str, set[str]] = {}
        self._moments: dict[str, tuple[Hashable, int]] = {}

    def forget_moments(self) -> None:
        """Start a call of the trainer: if it repeats a moment, the numbers are the same again."""
        self._moments.clear()

    def watch_devices(self, devices: Iterable[torch.device]) -> None:
        """Protect the generators of devices too."""
        self._of_devices = device_generators(devices)

    def watch_loaders(self, generators: Iterable[torch.Generator]) -> None:
        """Protect the generators of loaders too: an observer that reads data draws from them."""
        own = {id(one): one for one in generators if one is not torch.default_generator}
        numbered = enumerate(own.values())
        self._of_loaders = [torch_generator(f"loader {n}", one) for n, one in numbered]

    def call_observers(self, observers: ObserverCalls, when: Hashable, *args: object) -> None:
        """Call observers, and set the generators back to where they were.

        Args:
            observers: What to call.
            when: The moment; with the mount point it decides the random numbers.
            args: The arguments of the call.
        """
        # An observer may fire a mount point itself. The generators are protected already, and the
        # numbers of the outer observer continue.
        if self._is_active:
            observers.together(*args)
            return
        drawn = self._drawn.get(observers.key) if observers.is_busy else None
        generators = [*cached_generators(), *self._of_devices, *self._of_loaders]
        before = [one.get_state() for one in generators]
        self._is_active = True
        try:
            if drawn is not None and not drawn:
                observers.together(*args)
            else:
                self._call_each(generators, observers, drawn, when, args)
        finally:
            self._is_active = False
            _restore(generators, before, drawn)

    def _call_each(
        self,
        generators: Sequence[Generator],
        observers: ObserverCalls,
        drawn: set[str] | None,
        when: Hashable,
        args: tuple[object, ...],
    ) -> None:
        """Seed the generators for each observer; if they are busy, note which are drawn from."""
        # Several calls may share a moment: all iterations of a validation, for example.
        last, count = self._moments.get(observers.key, (None, 0))
        count = count + 1 if last == when else 0
        self._moments[observers.key] = when, count
        if self.key is None:
            self.key = _hash(str(torch.default_generator.get_state().tolist()))
        for name, call in observers.each:
            seed = _hash(f"{self.key}/{observers.name}/{when}/{count}/{name}")
            for generator in generators:
                if drawn is None or generator.name in drawn:
                    generator.seed(seed)
            seeded = [one.get_state() for one in generators] if observers.is_busy else []
            call(*args)
            if observers.is_busy:
                names = self._drawn.setdefault(observers.key, set())
                pairs = zip(generators, seeded, strict=True)
                names.update(one.name for one, state in pairs if one.has_moved(state))

    def state_dict(self) -> dict[str, object]:
        """Return the key, and which observers draw from which generators."""
        drawn = {key: sorted(names) for key, names in self._drawn.items()}
        return {"key": self.key, "drawn": drawn}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Restore what `state_dict` returned."""
        self.key = cast("int | None", state["key"])
        drawn = cast("Mapping[str, Collection[str]]", state["drawn"])
        self._drawn = {key: set(names) for key, names in drawn.items()}


def _restore(
    generators: Sequence[Generator], before: Sequence[object], drawn: set[str] | None
) -> None:
    for generator, state in zip(generators, before, strict=True):
        if generator.has_moved(state):
            generator.set_state(state)
            # An observer that was never seen to draw has drawn: it is seeded from now on.
            if drawn is not None:
                drawn.add(generator.name)


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
