"""A source of batches: any iterable, read epoch by epoch, in groups of microbatches."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice, takewhile
from typing import cast

from hookloop.data.attribute_state import restore_state, to_state
from hookloop.data.cut import Cut
from hookloop.data.exactness import SeedSamples
from hookloop.data.find_generators import DEPTH, find_generators
from hookloop.data.first_batches import first_batches
from hookloop.data.indices import PassStart
from hookloop.data.measures import (
    Measures,
    batches_after,
    has_another_size,
    list_changes,
    measure,
    samples_of_batches,
    sizes_of,
)
from hookloop.data.position.order import SharedGenerators
from hookloop.data.randomness import Randomness
from hookloop.data.replaced_data import ReplacedData
from hookloop.errors import CheckpointError, caused_by

Batches = Iterable[object]
Size = int | Callable[[], int]
"""How many microbatches a group has; a function where it changes."""
Groups = Iterator[list[object]]

_log = logging.getLogger("hookloop")


class Source(ReplacedData):
    """One iterable of batches, its name in messages, and the position in it.

    Args:
        data: A DataLoader, a list, any iterable. One that can be read only once (a generator) ends
            the training when it ends.
        name: ``train_data``, ``val_data['clean']``, ...
        seed_samples: Whether the randomness of samples depends on their position, where they are
            loaded in workers or the data is shared. ``"workers"`` leaves that of workers to torch
            and keeps it for a resume.
        limit: The most batches of a pass that are read: the first ones of its order.
    """

    def __init__(
        self,
        data: Batches,
        name: str,
        *,
        seed_samples: SeedSamples = True,
        limit: int | None = None,
    ) -> None:
        super().__init__(data, name, seed_samples=seed_samples, limit=limit)
        self._sets_epoch = False
        self._side_passes: list[Source] = []
        self.on_pass: Callable[[], None] | None = None
        """Called when a pass begins, before its order is drawn."""

    def set_epoch_per_pass(self) -> None:
        """Let each pass call ``set_epoch`` with its number: its passes are not the run's epochs."""
        self._sets_epoch = True

    def place_at(
        self,
        *,
        passes: int | None = None,
        batches: int | None = None,
        order: Randomness | None = None,
    ) -> None:
        """Continue a training that was begun elsewhere.

        Args:
            passes: How many passes have begun; by default as many as now.
            batches: How many batches of the current one are read; by default as many as now.
            order: The generators from which the next pass draws its order; by default the
                process's own.
        """
        if passes is not None:
            self.at.passes = passes
        if batches is not None:
            self.at.batches = batches
        self.order.shared = None if order is None else SharedGenerators(order)

    def parts(self) -> Sequence[Source]:
        """Return the data itself, or the streams that it is mixed from."""
        return [self]

    @property
    def began(self) -> Randomness | None:
        """Where the generators stood when the current pass began; None without one."""
        return self.at.began

    def label(self, groups: Groups, tell: Callable[[str], None]) -> Groups:
        """Return groups that tell of each microbatch from which stream it is, if it is of one."""
        return groups

    def epoch(self, size: Size, iterations: int | None = None) -> Iterator[list[object]]:
        """Return the groups of microbatches of one epoch.

        With a number of iterations, the current pass continues from one epoch to the next, and the
        data is read again when it ends.
        """
        if iterations is None:
            return self.groups(size)
        self._is_continuous = True
        return takewhile(bool, (self.next_group(size) for _ in range(iterations)))

    def next_group(self, size: Size, *, restarts: bool = True) -> list[object]:
        """Return the next group; an empty one at the end of a pass, unless a new one starts."""
        # The first try may find the end of a pass; the second starts a new one.
        for _ in range(1 + restarts):
            self._groups = self._groups or self.groups(size)
            group = next(self._groups, None)
            if group is not None:
                return group
            self._groups = None
        return []

    def groups(self, size: Size) -> Iterator[list[object]]:
        """Read a pass in groups of ``size`` microbatches; the last group may be smaller.

        A function is asked for the size of each group when that is read. If a checkpoint was made
        in the middle of the pass, it continues there.
        """
        self._goes_over = False
        yield from self._pass(size)
        while self._goes_over:  # The data was replaced in the middle of the pass.
            self._goes_over = False
            self.finish()
            yield from self._pass(size)

    def _pass(self, size: Size) -> Iterator[list[object]]:
        self.check_is_there()
        batches = self._continue() if self.at.is_inside else self._begin()
        if self._cut is not None:
            yield from self._shared_groups(batches, size, self._cut)
            return
        # The position is counted before each yield: a checkpoint is made while the group is out.
        if size == 1:  # The common case, at half the cost.
            for batch in batches:
                self.at.batches += 1
                yield [batch]
                if self._goes_over:
                    return
        while group := list(islice(batches, size if isinstance(size, int) else size())):
            self.at.batches += len(group)
            yield group
            if self._goes_over:
                return
        self.finish()

    def _shared_groups(
        self, batches: Iterator[object], size: Size, cut: Cut
    ) -> Iterator[list[object]]:
        while group := list(islice(batches, size if isinstance(size, int) else size())):
            self.at.batches += len(group)
            self._shares = [cut.shares.popleft() for _ in group]
            yield group
            if self._goes_over:
                return
        self.finish()

    def leave(self) -> None:
        """Leave the pass of `next_group`, wherever it is."""
        if self._groups is not None and self.batches_left != 0:
            self._reader.close()  # Its workers have loaded batches that nobody wants.
        self._groups = None
        self.finish()

    def close(self) -> None:
        """End the workers; a later pass starts them again, from the same position."""
        for source in self._side_passes:
            source.close()
        # An iterator whose workers are gone cannot continue, so it is made again.
        if self._reader.close():
            self._groups = None

    def _begin(self) -> Iterator[object]:
        """Start a pass at its first batch."""
        return self.order.draw(self._begin_now)

    def _begin_now(self) -> Iterator[object]:
        generators = self._reader.generators()
        # The states of GPUs are those of one rank.
        at = self.at
        at.began = began = Randomness.now(generators, gpus=self.order.shared is None)
        if self._sets_epoch:
            self.set_epoch(at.passes)
        if at.passes:
            self._monitor.warn_if_reordered()
        at.passes += 1
        if self.on_pass is not None:
            self.on_pass()
        key = began.key(at.passes)
        return self._read_from(PassStart(0, 0, key, at.passes, partial(began.restore, generators)))

    def _continue(self) -> Iterator[object]:
        """Continue in the middle of a pass, in the order that the pass had."""
        at, generators = self.at, self._reader.generators()
        now = Randomness.now(generators)
        if self._sets_epoch:
            self.set_epoch(at.passes - 1)
        # The order is drawn again from the generators as they were when the pass began. Then they
        # continue from the checkpoint, so that the model draws what it would have drawn.
        began = at.began or now
        key = began.key(at.passes)
        began.restore(generators)
        rewind = partial(began.restore, generators)
        start = PassStart(at.batches, at.samples_before, key, at.passes, rewind)
        batches = self._read_from(start)
        now.restore(generators)
        return batches

    def _read_from(self, start: PassStart) -> Iterator[object]:
        """Start a pass that ends at the limit, if there is one."""
        if self.limit is None:
            return self._reader.begin(start)
        left = self.batches_left or 0  # Known, because there is a limit.
        return islice(self._reader.begin(replace(start, most=left)), left)

    def state_dict(self) -> dict[str, object]:
        """Return the position in the data; the size of the state does not grow with it."""
        if self._awaited is not None:
            return {**self._awaited, **self.replacement_state(), "replaced": True}
        self._monitor.warn_if_reordered()
        stream = self._reader.stream_state() if self.at.batches else None
        return {
            **self.replacement_state(),
            **self.reading_state(),
            **({} if stream is None else {"stream": stream}),
            **self.at.state_dict(),
            "samples": self._samples_read(),
            "loader": self._reader.state_dict(self.at.batches),
            "measures": self._measures(),
            "orders": self._monitor.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go to a position that `state_dict` returned; warn if the data has changed."""
        if "streams" in state:
            raise CheckpointError(
                "The checkpoint was made with several streams of training data, and train_data is "
                "one: give the streams again, or begin a new run with load_from=."
            )
        if self._is_of_other_data(state):
            return
        self.load_reading_state(state)
        self._groups = None
        self.at.load_state_dict(state)
        measures = cast("Mapping[str, object]", state.get("measures") or {})
        samples = cast("int | None", state.get("samples", samples_of_batches(state, measures)))
        is_recounted = self._reader.counts_samples and has_another_size(measures, self._measures())
        if is_recounted and samples is not None and self.at.batches:
            self.at.batches, self.at.samples_before = 0, samples
        self._warn_of_changes(measures)
        self._monitor.warn_of_changes(cast("Mapping[str, list[object]]", state.get("orders") or {}))
        if loader := cast("dict[str, object]", state["loader"]):
            self._reader.load_state_dict(loader)
        if stream := cast("dict[str, object] | None", state.get("stream")):
            self._reader.load_stream_state(stream)

    def _measures(self) -> Measures:
        measures = measure(self.data) | {"limit": self.limit}
        if self._is_shard and self._cut is not None:
            measures["processes"] = self._cut.size
        return measures

    def _warn_of_changes(self, before: Mapping[str, object]) -> None:
        changes = list_changes(before, self._measures())
        if not changes:
            return
        at = self.at
        where = f"at batch {at.batches} of it"
        if at.samples_before and not at.batches:
            where = f"after {at.samples_before} samples of the pass and reads the others once"
        what = f"{self.name} has changed: {'; '.join(changes)}. The run continues {where}"
        _log.warning("%s, so it is not what an uninterrupted run would have read.", what)

    def _samples_read(self) -> int | None:
        """Count the samples of the current pass that were read; None if only batches count."""
        if not self._reader.counts_samples:
            return None
        size, length = sizes_of(self.data)
        return min(self.at.samples_before + self.at.batches * size, length)

    @property
    def batches_left(self) -> int | None:
        """How many batches the current pass still has, or None if that is unknown."""
        if not self.at.samples_before:
            total = self.num_batches
            return None if total is None else max(0, total - self.at.batches)
        return batches_after(self.data, self._samples_read() or 0, self.limit)

    def first_batch(self) -> object:
        """Return the first batch, not shuffled where that is possible, and leave no trace of it."""
        return first_batches(self.data, 1, self.name)[0]

    def read(self) -> Iterator[object]:
        """Read a pass batch by batch, for an evaluation."""
        batches = self._begin()
        return batches if self._cut is None else self._read_shared(batches, self._cut)

    def _read_shared(self, batches: Iterator[object], cut: Cut) -> Iterator[object]:
        for batch in batches:
            self._shares = [cut.shares.popleft()]
            yield batch

    def bookmark(self) -> Callable[[], None]:
        """Return what undoes the whole passes that are read from now on, by `read`.

        What it cannot undo is that an iterator was read, which can be read only once.
        """
        if self.is_one_pass:
            return lambda: None
        state, samplers, passes = self.reading_state(), self._reader.sampler_states(), self.passes
        generators = {id(one): one for _, one in find_generators(self.data, DEPTH + 1)}
        drawn = [(one, to_state(one)) for one in generators.values()]

        def put_back() -> None:
            if not passes:  # Persistent workers draw their seed when they are started.
                self.close()
            self.load_reading_state(state)
            self._reader.load_sampler_states(samplers)
            for generator, before in drawn:
                restore_state(generator, before)

        return put_back

    def __iter__(self) -> Iterator[object]:
        """Read a pass for a hook: it is not counted and does not disturb the current pass."""
        side_pass = Source(self.data, self.name, seed_samples=self._seed_samples, limit=self.limit)
        self._side_passes.append(side_pass)
        try:
            yield from side_pass.read()
        finally:
            side_pass.close()
            self._side_passes.remove(side_pass)


def open_streams(
    data: Batches | Mapping[str, Batches] | None,
    name: str,
    *,
    seed_samples: SeedSamples = True,
    limit: int | None = None,
) -> dict[str, Source]:
    """Make sources of evaluation data: one stream without a name, or several with names.

    >>> list(open_streams({"clean": [1], "noisy": [2]}, "val_data"))
    ['clean', 'noisy']
    >>> list(open_streams([1, 2], "val_data"))
    ['']
    """
    if data is None:
        return {}
    if isinstance(data, Mapping):
        streams = {str(key): (value, f"{name}['{key}']") for key, value in data.items()}
    else:
        streams = {"": (data, name)}
    with caused_by(name):
        return {
            key: Source(*stream, seed_samples=seed_samples, limit=limit)
            for key, stream in streams.items()
        }
