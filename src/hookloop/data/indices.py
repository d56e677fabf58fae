"""The indices of a pass, from its first batch or from the middle, in place of a loader's sampler.

A sampler is an iterator somewhere in its own code, which no checkpoint can hold. It is brought to
the same place by being asked as often again, from the generators and attributes with which its pass
began. A sampler of a user's own may besides

- draw as it goes: from the second batch on it does so from a random stream of its own, which the
  model does not disturb, and which is the same when it is asked again;
- react to the training, by attributes that change meanwhile: they are set to what they were when
  the checkpoint was made, once it has been brought to its place;
- be ahead of the training, as the workers' batches are ordered in advance: the indices of these are
  in the checkpoint.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import cast

import numpy as np

from hookloop.data.kept import NOTHING, is_same, keep
from hookloop.data.samplers import OwnRandomness, SamplerStates, State
from hookloop.data.seeding import Sent

_log = logging.getLogger("hookloop")

_END = object()


@dataclass(frozen=True)
class Place:
    """Where a pass begins.

    Attributes:
        skip: Batches that are not wanted.
        key: What the randomness of samples loaded in workers follows from.
        passes: The number of the pass, from 1.
        rewind: Sets the generators to where they were when the pass began.
    """

    skip: int = 0
    key: int = 0
    passes: int = 1
    rewind: Callable[[], None] = lambda: None


class SkippingIndices:
    """An index sampler that can begin in the middle; used by a loader in place of its own.

    The inner sampler is not advanced before the first index is asked for, because it draws its
    random numbers then, after the loader has drawn its own: as without us.

    Args:
        inner: The sampler.
        samplers: What keeps a state in it, to be restored on the way to the place.
        one_each: Whether it gives a batch of indices at a time.
        seeds: Whether indices go along with what their samples' seeds follow from.
        draws_alone: Whether random numbers that it draws later on come from a stream of their own.
        ahead: Batches that may be ordered before the training wants them.
    """

    def __init__(
        self,
        inner: Iterable[object],
        samplers: SamplerStates,
        *,
        one_each: bool,
        seeds: bool,
        draws_alone: bool = False,
        ahead: int = 0,
    ) -> None:
        self._inner = inner
        self._samplers = samplers
        self._one_each = one_each
        self._seeds = seeds
        self._draws_alone = draws_alone
        self._ahead = ahead
        self._place = Place()
        self._rewinds = False
        self._left: Mapping[str, object] = {}
        self._current: _Pass | None = None

    def prepare(self, place: Place, left: Mapping[str, object], *, rewinds: bool) -> None:
        """Note where the next pass begins, and whether the generators go back before it does.

        Args:
            place: The place.
            left: What `state` returned when the pass was left there; may be empty.
            rewinds: Whether to rewind.
        """
        self._place, self._left, self._rewinds = place, left, rewinds

    def prime(self) -> None:
        """Do the skipping now, if the loader has not asked for an index yet."""
        if self._place.skip and self._current is not None:
            self._current.prime()

    def state(self, position: int) -> dict[str, object]:
        """Return how far the sampler is, when that many batches have arrived; may be empty."""
        return self._current.state(position) if self._current is not None and position else {}

    def __iter__(self) -> Iterator[object]:
        place = self._place
        own = OwnRandomness(place.key) if self._draws_alone else None
        self._current = current = _Pass(iter(self._inner), place.skip, own, self._ahead)
        if self._rewinds:
            current.rewind = place.rewind
        if self._left:
            current.take_up(self._left, self._samplers)
        return self._seeded(current) if self._seeds else current

    def __len__(self) -> int:
        return len(cast("Sequence[object]", self._inner))

    def _seeded(self, indices: Iterator[object]) -> Iterator[Sent]:
        """Give indices what the seeds of their samples follow from: pass and place."""
        key = self._place.key
        for batch, group in enumerate(indices, start=self._place.skip):
            if self._one_each:
                yield list(cast("Iterable[object]", group)), key, batch
            else:
                yield [group], key, batch


class _Pass:
    """An iterator that skips once, at the latest when the first index is asked for.

    Args:
        inner: The sampler's own.
        skip: Batches that are not wanted.
        own: The randomness of all batches but the first; None if it draws as it likes.
        ahead: The newest batches to remember.
    """

    def __init__(
        self, inner: Iterator[object], skip: int, own: OwnRandomness | None, ahead: int
    ) -> None:
        self.rewind: Callable[[], None] | None = None
        self._skip = skip
        self._own = own
        self._drawn = 0
        self._ended = False
        self._recent: deque[object] | None = None
        if own is not None or ahead:
            self._recent = deque(maxlen=1 + ahead)
            inner = self._noting(inner, self._recent)
        self._inner = inner
        self._left: Mapping[str, object] = {}
        self._samplers: SamplerStates | None = None

    def take_up(self, left: Mapping[str, object], samplers: SamplerStates) -> None:
        """Continue the pass as it was left."""
        self._left, self._samplers = left, samplers
        self._skip = cast("int", left["drawn"])

    def prime(self) -> None:
        rewind, self.rewind = self.rewind, None
        skip, self._skip = self._skip, 0
        if rewind is not None:
            rewind()
        next(islice(self._inner, skip, skip), None)
        left, self._left = self._left, {}
        if left:
            self._arrive(left)

    def state(self, position: int) -> dict[str, object]:
        """Return how far the sampler is, if that is more than the position."""
        if self._recent is None:
            return {}
        ahead = self._drawn - position
        recent = [_portable(one) for one in self._recent]
        if not 0 <= ahead <= len(recent) or NOTHING in recent:
            return {}
        return {
            "drawn": self._drawn,
            "ended": self._ended,
            "ahead": recent[len(recent) - ahead :],
            "last": recent[-1] if recent else None,
            "inside": self._own.state_dict() if self._own is not None else None,
        }

    def __iter__(self) -> Iterator[object]:
        return self

    def __next__(self) -> object:
        if self._skip or self.rewind is not None:
            self.prime()
        return next(self._inner)

    def _noting(self, indices: Iterator[object], recent: deque[object]) -> Iterator[object]:
        """Keep count; let a sampler draw undisturbed by the model, and the other way round.

        The first time it draws as without us, since most samplers then draw for the whole pass.
        """
        own = self._own
        for index in islice(indices, 1) if own is not None else indices:
            self._drawn += 1
            recent.append(index)
            yield index
        while own is not None:
            with own:
                index = next(indices, _END)
            if index is _END:
                break
            self._drawn += 1
            recent.append(index)
            yield index
        self._ended = True

    def _arrive(self, left: Mapping[str, object]) -> None:
        """Set what the sampler depends on to what it was, once it has been asked as often."""
        recent = self._recent
        if left["ended"]:  # What it does at its end has been done, and is not to be done again.
            next(self._inner, None)
        if recent is None or self._samplers is None:
            return
        now = cast("State", left["samplers"])
        is_repeated = is_same(self._samplers.now(), now)
        if not is_repeated:  # They follow the training.
            self._samplers.restore(now)
        elif recent and not is_same(_portable(recent[-1]), left["last"]):
            _log.warning(
                "The sampler does not repeat itself: asked again, it gave other samples than in "
                "the run that is resumed. This resume is not exact; give the sampler a "
                "state_dict() and load_state_dict()."
            )
        if self._own is not None and left["inside"] is not None:
            self._own.load_state_dict(cast("Mapping[str, object]", left["inside"]))
        ahead = cast("list[object]", left["ahead"])
        recent.clear()
        recent.extend(ahead or [left["last"]])
        self._inner = chain(ahead, self._inner)


def _portable(index: object) -> object:
    """Return an index, or a batch of them, as a checkpoint can hold it, or `NOTHING`."""
    return index.tolist() if isinstance(index, np.ndarray) else keep(index)
