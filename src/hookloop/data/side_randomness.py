"""Random numbers for those who only look on, so that the training draws the same without them.

While they act, the generators are theirs: each begins from a seed that follows from the run's key,
from who it is and when it acts, so that a resume repeats its numbers without keeping any. Then the
generators are put back to where the training left them.

To seed takes 10 us, which is too much for every iteration and somebody who never draws. So a busy
place is seeded at its first firing, and then only for the generators that moved there: in all
firings after that in which one moved. Otherwise they are read before and after, and no more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import torch

from hookloop.data.kept_generators import Generator, TorchGenerator, process_generators


@dataclass(frozen=True)
class Place:
    """Who acts at one place.

    Attributes:
        name: Of the place.
        is_busy: Whether they act in every iteration, so that each microsecond counts.
        together: Calls them all.
        each: Calls one of them, by name.
    """

    name: str
    is_busy: bool
    together: Callable[..., object]
    each: Sequence[tuple[str, Callable[..., object]]]

    @cached_property
    def key(self) -> str:
        """What tells it from others of its name: hooks with a schedule act by themselves."""
        return f"{self.name}: {', '.join(name for name, _ in self.each)}"


class SideRandomness:
    """Keeps the generators for the training.

    >>> from functools import partial
    >>> side = SideRandomness()
    >>> generator = torch.manual_seed(1)
    >>> before = generator.get_state()
    >>> draw = partial(torch.rand, 1)
    >>> side.lend(Place("after_train_iter", True, draw, [("draw", draw)]), when=1)
    >>> torch.equal(generator.get_state(), before)
    True
    """

    def __init__(self) -> None:
        self.key: int | None = None
        """What all seeds follow from; None until it is needed."""
        self._is_lent = False
        self._own: list[Generator] = process_generators()
        self._generators = self._own
        self._drawn: dict[str, set[str]] = {}
        self._moments: dict[str, tuple[Hashable, int]] = {}

    def begin(self) -> None:
        """Begin a call of the trainer: what it repeats gets the numbers that it got before."""
        self._moments.clear()

    def watch_devices(self, devices: Iterable[torch.device]) -> None:
        """Keep the generators of devices too, besides the process's own."""
        self._generators = self._own = process_generators(devices)

    def watch_loaders(self, loaders: Iterable[torch.Generator]) -> None:
        """Keep those of the loaders too, which are drawn from by whoever reads the data."""
        own = {id(one): one for one in loaders if one is not torch.default_generator}
        named = enumerate(own.values())
        self._generators = [*self._own, *(TorchGenerator(f"loader {n}", one) for n, one in named)]

    def lend(self, place: Place, when: Hashable, *args: object) -> None:
        """Let those at a place act, and put the generators back to where they were.

        Args:
            place: Who acts.
            when: What, besides the place, their random numbers follow from.
            args: What they are called with.
        """
        if self._is_lent:  # Called by one who looks on: to the training it is the same one.
            place.together(*args)
            return
        drawn = self._drawn.get(place.key) if place.is_busy else None
        before = self._states()
        self._is_lent = True
        try:
            if drawn is not None and not drawn:
                place.together(*args)
            else:
                self._call_each(place, drawn, when, args)
        finally:
            self._is_lent = False
            self._put_back(before, drawn)

    def _call_each(
        self, place: Place, drawn: set[str] | None, when: Hashable, args: tuple[object, ...]
    ) -> None:
        """Seed the generators for one after the other; at a busy place note which are needed."""
        last, count = self._moments.get(place.key, (None, 0))
        count = count + 1 if last == when else 0
        self._moments[place.key] = when, count
        if self.key is None:
            self.key = _number(str(torch.default_generator.get_state().tolist()))
        for name, call in place.each:
            number = _number(f"{self.key}/{place.name}/{when}/{count}/{name}")
            for one in self._generators:
                if drawn is None or one.name in drawn:
                    one.seed(number)
            seeded = self._states() if place.is_busy else ()
            call(*args)
            if place.is_busy:
                known = self._drawn.setdefault(place.key, set())
                pairs = zip(self._generators, seeded, strict=True)
                known.update(one.name for one, then in pairs if one.now() != then)

    def _states(self) -> list[Hashable]:
        return [one.now() for one in self._generators]

    def _put_back(self, before: list[Hashable], drawn: set[str] | None) -> None:
        after = self._states()
        if after == before:
            return
        for one, then, now in zip(self._generators, before, after, strict=True):
            if then != now:
                one.restore(then)
                if drawn is not None:
                    drawn.add(one.name)

    def state_dict(self) -> dict[str, object]:
        """Return the key, and where somebody draws from what."""
        return {"key": self.key, "drawn": {at: sorted(names) for at, names in self._drawn.items()}}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Take back what `state_dict` returned."""
        self.key = cast("int | None", state["key"])
        drawn = cast("Mapping[str, Collection[str]]", state["drawn"])
        self._drawn = {place: set(names) for place, names in drawn.items()}


def _number(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
