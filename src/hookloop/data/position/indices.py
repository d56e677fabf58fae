"""An index sampler that can start in the middle of a pass, in place of a loader's own.

No checkpoint can hold the iterator of a sampler. To bring a new iterator to the same position, it
is advanced as often as the old one, from the generators and attributes with which the pass began.
A user's own sampler may also

- draw during the pass: from the second batch on it draws from a random stream of its own, which the
  model does not disturb, and which is the same when the sampler is advanced again;
- react to the training, through attributes that change meanwhile: once the sampler is at its
  position, they are set to what they were when the checkpoint was made;
- be ahead of the training, because workers receive indices in advance: the checkpoint holds the
  indices of those batches.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import cast

import numpy as np
from torch.utils.data import BatchSampler

from hookloop.data.random.apart import RandomStream
from hookloop.data.random.per_sample import GroupTuple
from hookloop.data.random.states import GeneratorStates
from hookloop.data.ranks.cut import Cut
from hookloop.data.reading.samplers import SamplerStates, State
from hookloop.objects.values import NO_STATE, is_equal, to_state

_log = logging.getLogger("hookloop")

_END = object()

NoteIndices = Callable[[int, int, object], object]


@dataclass(frozen=True)
class PassStart:
    """Where a pass starts.

    Attributes:
        skip: Batches to skip.
        samples: Samples to skip before that: what the pass had given before the batch size changed.
        key: The key from which the randomness of samples loaded in workers is derived.
        passes: The number of the pass, from 1.
        rewind: Sets the generators to where they were when the pass began.
        most: How many batches to read from here on, if not all, so that workers load no others.
        restarts_workers: Whether persistent workers end before, and others are started.
    """

    skip: int = 0
    samples: int = 0
    key: int = 0
    passes: int = 1
    rewind: Callable[[], None] = lambda: None
    most: int | None = None
    restarts_workers: bool = False


class SkippingIndices:
    """An index sampler that can start in the middle; a loader uses it in place of its own.

    Args:
        inner: The sampler.
        samplers: Those parts of it that have a state, which is restored at the position.
        is_batched: Whether it returns a batch of indices at a time.
        seeds: See below.
        has_own_stream: Whether it draws from a random stream of its own after the first batch.
        ahead: How many batches may be requested before training needs them.

    Attributes:
        cut: Takes this rank's part of each batch; None if no other rank reads the data.
        primes: Whether the order is drawn when `prime` is called, and not with the first batch.
        seeds: Whether each index is returned with the key of its random numbers.
        notes: Are told the number of the pass, that of the batch in it, and its index or indices,
            when they are asked for; workers ask in advance.
    """

    cut: Cut | None = None
    primes = False
    notes: Sequence[NoteIndices] = ()

    def __init__(
        self,
        inner: Iterable[object],
        samplers: SamplerStates,
        *,
        is_batched: bool,
        seeds: bool,
        has_own_stream: bool = False,
        ahead: int = 0,
    ) -> None:
        self._inner = inner
        self._samplers = samplers
        self._is_batched = is_batched
        self.seeds = seeds
        self._has_own_stream = has_own_stream
        self._ahead = ahead
        self._start = PassStart()
        self._rewinds = False
        self._saved: Mapping[str, object] = {}
        self._current: _Pass | None = None

    def prepare(self, start: PassStart, saved: Mapping[str, object], *, rewinds: bool) -> None:
        """Set where the next pass starts.

        Args:
            start: Where it starts.
            saved: What `state` returned at this position; may be empty.
            rewinds: Whether the generators are rewound before the sampler draws the order.
        """
        self._start, self._saved, self._rewinds = start, saved, rewinds

    def prime(self) -> None:
        """Skip now, unless the loader has already asked for an index."""
        start = self._start
        if (start.skip or start.samples or self.primes) and self._current is not None:
            self._current.prime()

    def state(self, position: int) -> dict[str, object]:
        """Return how far the sampler is after that many batches; may be empty."""
        return self._current.state(position) if self._current is not None and position else {}

    @property
    def draws_from(self) -> list[str] | None:
        """The process's generators that a user's sampler drew the last order from, if known."""
        return self._current.draws_from if self._current is not None else None

    def __iter__(self) -> Iterator[object]:
        start = self._start
        stream = RandomStream(start.key) if self._has_own_stream else None
        # The inner sampler is not advanced here, but when the first index is asked for: it draws
        # its random numbers then, after the loader has drawn its own, as in a plain DataLoader.
        inner = _rest_of(self._inner, start.samples) if start.samples else iter(self._inner)
        self._current = current = _Pass(inner, start.skip, stream, self._ahead)
        # Skipping draws the order as well.
        current.draws_when_primed = not start.skip and (start.samples > 0 or self.primes)
        if self._rewinds:
            current.rewind = start.rewind
        if self._saved:
            current.resume_from(self._saved, self._samplers)
        indices: Iterator[object] = current
        if start.most is not None:
            indices = islice(current, start.most)
        if self.notes:
            indices = self._noted(indices, self.notes)
        if self.cut is not None:
            return self._own_parts(indices, self.cut)
        return self._seeded(indices) if self.seeds else indices

    def __len__(self) -> int:
        return len(cast("Sequence[object]", self._inner))

    def _noted(self, indices: Iterator[object], notes: Sequence[NoteIndices]) -> Iterator[object]:
        """Tell those who asked of the indices."""
        for batch, group in enumerate(indices, start=self._start.skip):
            for note in notes:
                note(self._start.passes, batch, group)
            yield group

    def _seeded(self, indices: Iterator[object]) -> Iterator[GroupTuple]:
        """Add to indices the key and the number of their batch, for the seeds of their samples."""
        key = self._start.key
        for batch, group in enumerate(indices, start=self._start.skip):
            if self._is_batched:
                yield list(cast("Iterable[object]", group)), key, batch
            else:
                yield [group], key, batch

    def _own_parts(self, indices: Iterator[object], cut: Cut) -> Iterator[object]:
        """Cut batches of indices; seeds follow from the position in the global batch."""
        key = self._start.key
        for batch, group in enumerate(indices, start=self._start.skip):
            every = list(cast("Iterable[object]", group))
            for part in cut.parts:
                first, end = part.place(len(every))
                own = part.indices(every)
                # An empty cut is loaded from the beginning of the batch.
                yield (own, key, batch, first if end > first else 0) if self.seeds else own


class _Pass:
    """An iterator that skips once, at the latest when the first index is asked for.

    Args:
        inner: The sampler's own iterator.
        skip: Batches to skip.
        stream: The random stream for all batches after the first; None if the sampler draws from
            the global generators.
        ahead: How many of the newest batches to remember.
    """

    def __init__(
        self, inner: Iterator[object], skip: int, stream: RandomStream | None, ahead: int
    ) -> None:
        self.rewind: Callable[[], None] | None = None
        self.draws_when_primed = False
        """Whether priming draws the order, even if there is no batch to skip."""
        self.draws_from: list[str] | None = None
        self._skip = skip
        self._stream = stream
        self._drawn = 0
        self._ended = False
        self._recent: deque[object] | None = None
        # torch's samplers without workers are never ahead, and need no record: they stay as fast
        # as they are.
        if stream is not None or ahead:
            self._recent = deque(maxlen=1 + ahead)
            inner = self._recorded(inner, self._recent)
        self._inner = inner
        self._saved: Mapping[str, object] = {}
        self._samplers: SamplerStates | None = None

    def resume_from(self, saved: Mapping[str, object], samplers: SamplerStates) -> None:
        """Continue the pass from what `state` returned."""
        self._saved, self._samplers = saved, samplers
        self._skip = cast("int", saved["drawn"])

    def prime(self) -> None:
        """Skip, once."""
        rewind, self.rewind = self.rewind, None
        skip, self._skip = self._skip, 0
        if rewind is not None:
            rewind()
        next(islice(self._inner, skip, skip), None)
        if self.draws_when_primed:
            self.draws_when_primed = False
            self._inner = chain(list(islice(self._inner, 1)), self._inner)
        saved, self._saved = self._saved, {}
        if saved:
            self._restore(saved)

    def state(self, position: int) -> dict[str, object]:
        """Return how far the sampler is; empty if the position alone tells that."""
        if self._recent is None:
            return {}
        ahead = self._drawn - position
        recent = [_index_state(index) for index in self._recent]
        # Indices of a type that no checkpoint can hold: the position has to do.
        if not 0 <= ahead <= len(recent) or NO_STATE in recent:
            return {}
        return {
            "drawn": self._drawn,
            "ended": self._ended,
            "ahead": recent[len(recent) - ahead :],
            "last": recent[-1] if recent else None,
            "inside": self._stream.state_dict() if self._stream is not None else None,
        }

    def __iter__(self) -> Iterator[object]:
        return self

    def __next__(self) -> object:
        if self._skip or self.rewind is not None:
            self.prime()
        self.draws_when_primed = False
        return next(self._inner)

    def _recorded(self, indices: Iterator[object], recent: deque[object]) -> Iterator[object]:
        """Count and remember the indices; give a sampler its own random stream."""
        stream = self._stream
        before = GeneratorStates.now(gpus=False) if stream is not None else None
        # The first batch is drawn from the global generators, as in a plain DataLoader: most
        # samplers draw the whole order then.
        for index in islice(indices, 1) if stream is not None else indices:
            if before is not None:
                self.draws_from = before.moved(GeneratorStates.now(gpus=False))
            self._drawn += 1
            recent.append(index)
            yield index
        while stream is not None:
            with stream:
                index = next(indices, _END)
            if index is _END:
                break
            self._drawn += 1
            recent.append(index)
            yield index
        self._ended = True

    def _restore(self, saved: Mapping[str, object]) -> None:
        """Set what the sampler depends on to what it was, once it is at its position."""
        recent = self._recent
        # Code after the last yield has already run in the checkpointed run. It runs here, before
        # the state is restored, so that its effects are not added to it.
        if saved["ended"]:
            next(self._inner, None)
        if recent is None or self._samplers is None:
            return
        states = cast("State", saved["samplers"])
        is_repeated = is_equal(self._samplers.now(), states)
        if not is_repeated:  # Their attributes also depend on the training.
            self._samplers.restore(states)
        elif recent and not is_equal(_index_state(recent[-1]), saved["last"]):
            _log.warning(
                "The sampler does not repeat itself: advanced again, it returned other samples "
                "than in the run that is resumed. This resume is not exact; give the sampler a "
                "state_dict() and load_state_dict()."
            )
        if self._stream is not None and saved["inside"] is not None:
            self._stream.load_state_dict(cast("Mapping[str, object]", saved["inside"]))
        # Batches that workers had received in advance are sent again, as they were.
        ahead = cast("list[object]", saved["ahead"])
        recent.clear()
        recent.extend(ahead or [saved["last"]])
        self._inner = chain(ahead, self._inner)


def _rest_of(sampler: Iterable[object], samples: int) -> Iterator[list[int]]:
    """Make batches of the samples that an order has left after some."""
    batches = cast("BatchSampler", sampler)
    left = islice(batches.sampler, samples, None)
    while batch := list(islice(left, batches.batch_size)):
        if len(batch) == batches.batch_size or not batches.drop_last:
            yield batch


def _index_state(index: object) -> object:
    """Return an index, or a batch of them, in a form for a checkpoint, or `NO_STATE`."""
    return index.tolist() if isinstance(index, np.ndarray) else to_state(index)
