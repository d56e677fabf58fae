"""A stream of batches: any iterable, read pass by pass, in groups of microbatches."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, cast

import torch

from hookloop.data.position.indices import PassStart
from hookloop.data.position.measures import batches_after, length_of
from hookloop.data.position.noted import NotedIndices
from hookloop.data.position.position import (
    Groups,
    OpenPass,
    Order,
    Position,
    SharedGenerators,
    Size,
)
from hookloop.data.random.states import GeneratorStates
from hookloop.data.reading.current import CurrentData
from hookloop.data.reading.exactness import SeedSamples
from hookloop.data.reading.first_batches import first_batches
from hookloop.data.reading.samplers import Stateful
from hookloop.errors import CheckpointError, caused_by

if TYPE_CHECKING:
    from hookloop.data.ranks.cut import Cut
    from hookloop.data.ranks.place import Share
    from hookloop.every import Counters

Batches = Iterable[object]
NoteLength = Callable[[int | None], None]

_log = logging.getLogger("hookloop")


class Stream:
    """One iterable of batches, its name in messages, and the position in it.

    Args:
        data: A DataLoader, a list, any iterable. One that can be read only once (a generator) ends
            the training when it ends.
        name: ``train_data``, ``val_data['clean']``, ...
        seed_samples: Whether the randomness of samples depends on their position, where they are
            loaded in workers or the data is shared. ``"workers"`` leaves that of workers to torch
            and keeps it for a resume.
        limit: The most batches of a pass that are read: the first ones of its order.

    Attributes:
        current: The data that is read now, and what replaces it.
        at: How far the current pass is.
        order: From where the order of the next pass is drawn.
        open_pass: The pass that is read group by group.
    """

    def __init__(
        self,
        data: Batches,
        name: str,
        *,
        seed_samples: SeedSamples = True,
        limit: int | None = None,
    ) -> None:
        self.name = name
        self.limit = limit
        self.current = CurrentData(data, name, seed_samples=seed_samples)
        self.at = Position()
        self.order = Order()
        self.open_pass = OpenPass()
        self._notes: NotedIndices | None = None
        self._seed_samples = seed_samples
        self._sets_epoch = False
        self._is_continuous = False  # Whether passes continue from one epoch to the next.
        self._restarts_workers = False  # Whether a hook asked for that.
        self._goes_over = False  # Whether the groups that are read go over to other data.
        self._shares: list[Share] = []
        self._side_passes: list[Stream] = []
        self._note_pass: Callable[[], None] | None = None
        self._note_replaced: Callable[[], None] = lambda: None
        self._note_length: Callable[[], None] = lambda: None

    # --- what it is -------------------------------------------------------------------------------

    @property
    def data(self) -> Batches:
        """The data that is read now."""
        return self.current.data

    @property
    def position(self) -> int:
        """Batches taken from the current pass; 0 if there is none."""
        return self.at.batches

    @property
    def passes(self) -> int:
        """How many passes have begun."""
        return self.at.passes

    @property
    def inexact(self) -> str | None:
        """Why a resume in the middle of this data may not be exact, or None if it is."""
        if self.limit is not None and isinstance(self.current.data, Stateful):
            return (
                "limit= ends its passes early, and its own state_dict() would continue them in the "
                "next epoch"
            )
        return self.current.reader.inexact

    @property
    def num_batches(self) -> int | None:
        """How many batches an epoch has, or None if that is unknown without reading them.

        Data of unknown length is taken to reach its limit, if it has one.
        """
        total = length_of(self.current.data)
        if self.limit is None:
            return total
        return self.limit if total is None else min(self.limit, total)

    @property
    def batches_left(self) -> int | None:
        """How many batches the current pass still has, or None if that is unknown."""
        if not self.at.samples_before:
            total = self.num_batches
            return None if total is None else max(0, total - self.at.batches)
        return batches_after(self.current.data, self.current.samples_read(self.at) or 0, self.limit)

    @property
    def parts_of_batch(self) -> int:
        """Into how many parts each batch is read: one for each logical rank of this process."""
        return 1 if self.current.cut is None else len(self.current.cut.parts)

    @property
    def is_one_pass(self) -> bool:
        """Whether the data can be read only once."""
        return isinstance(self.current.data, Iterator)

    def parts(self) -> Sequence[Stream]:
        """Return the stream itself, as a mixture returns those that it is mixed from."""
        return [self]

    def generators(self) -> list[torch.Generator]:
        """Return the generators that the order depends on, except for the process's own."""
        return self.current.reader.generators()

    def first_batch(self) -> object:
        """Return the first batch, not shuffled where that is possible, and leave no trace of it."""
        return first_batches(self.current.data, 1, self.name)[0]

    # --- how it takes part in a run ---------------------------------------------------------------

    def follow(self, progress: Counters, note_length: NoteLength | None) -> None:
        """Take part in a run.

        Args:
            progress: That of the run.
            note_length: Called with the number of batches of an epoch when the data is replaced;
                None if passes continue from one epoch to the next.
        """
        self.continue_passes(note_length is None)
        if note_length is not None:
            self._note_length = lambda: note_length(self.num_batches)

    def continue_passes(self, is_continuous: bool) -> None:
        """Set whether its passes continue from one epoch to the next."""
        self._is_continuous = is_continuous

    def when_replaced(self, call: Callable[[], None]) -> None:
        """Call something when the data was replaced, and its generators with it."""
        self._note_replaced = call

    def when_begun(self, call: Callable[[], None]) -> None:
        """Call something when a pass begins, before its order is drawn."""
        self._note_pass = call

    def note_indices(self, most: int) -> None:
        """Keep the indices of so many of the newest batches, from the next pass on."""
        if self._notes is None:
            self._notes = NotedIndices()
            self.current.reader.note_indices(self._notes.note)
        self._notes.keep(most)

    def noted_indices(self, count: int) -> list[object] | None:
        """Return the indices of the last batches that were read; None if they are not known."""
        at = self.at
        return None if self._notes is None else self._notes.before(at.passes, at.batches, count)

    def set_epoch(self, epoch: int) -> None:
        """Call ``set_epoch`` of the data or its sampler, so that it shuffles in another order."""
        self.current.set_epoch(epoch)

    def set_epoch_per_pass(self) -> None:
        """Let each pass call ``set_epoch`` with its number: its passes are not the run's epochs."""
        self._sets_epoch = True

    def place_at(
        self,
        *,
        passes: int | None = None,
        batches: int | None = None,
        order: GeneratorStates | None = None,
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

    def restart_workers(self) -> None:
        """Let the next pass start new workers where they are persistent.

        They have copies of the data set, so what is changed in it later reaches only new ones.
        """
        self._restarts_workers = True

    def replace(self, data: Batches, *, now: bool = False) -> None:
        """Read other data from the next pass on, or at once in a training without epochs.

        After a resume, the first call brings back the data that a hook had replaced before.

        Args:
            data: The other data.
            now: Whether the current pass goes over to it with the next batch.
        """
        current = self.current
        state, current.awaited = current.awaited, None
        if state is not None:
            self._switch(data)
            self._take_over(state)
            return
        current.expects_next = False
        is_inside = self.at.is_inside
        if is_inside and not (now or self._is_continuous):
            current.switch_later(data)
            return
        self._goes_over = is_inside and self.open_pass.groups is None
        if is_inside:
            current.reader.close()  # Nothing reads from it any more.
        current.next = self.open_pass.groups = None
        self._switch(data)
        self.finish()  # Now: a checkpoint of this iteration is one of the new data.

    def _switch(self, data: Batches) -> None:
        # The passes are counted on: a resume cannot tell data that is there again from new data.
        self.current.switch(data)
        if self._notes is not None:
            self.current.reader.note_indices(self._notes.note)
        self._note_length()
        self._note_replaced()

    def _take_over(self, state: Mapping[str, object]) -> None:
        """Go on in data that is there again after a resume."""
        if state["position"] or state.get("samples_before"):
            self.load_state_dict(state)
        else:  # Between two passes it may be new data as well, with generators of its own.
            self.at.passes = cast("int", state["passes"])

    # --- reading ----------------------------------------------------------------------------------

    def epoch(self, size: Size, iterations: int | None = None) -> Groups:
        """Return the groups of microbatches of one epoch.

        With a number of iterations, the current pass continues from one epoch to the next, and the
        data is read again when it ends.
        """
        self._is_continuous |= iterations is not None
        return self.open_pass.epoch(self.groups, size, iterations)

    def groups(self, size: Size) -> Groups:
        """Read a pass in groups of ``size`` microbatches; the last group may be smaller.

        A function is asked for the size of each group when that is read. If a checkpoint was made
        in the middle of the pass, it continues there.
        """
        at, goes_over = self.at, True
        while goes_over:  # Again where the data was replaced in the middle of the pass.
            self._goes_over = False
            self.current.check_is_there()
            is_inside = at.batches or at.samples_before
            batches = self._continue() if is_inside else self.order.draw(self._begin)
            cut = self.current.cut
            # The position is counted before each yield: a checkpoint is made while the group is
            # out.
            if size == 1 and cut is None:  # The common case, at half the cost.
                for batch in batches:
                    at.batches += 1
                    yield [batch]
                    if self._goes_over:
                        break
            else:
                parts = self.parts_of_batch
                while group := list(
                    islice(batches, parts * (size if isinstance(size, int) else size()))
                ):
                    at.batches += len(group) // parts
                    if cut is not None:
                        self._shares = [cut.shares.popleft() for _ in group]
                    yield group
                    if self._goes_over:
                        break
            goes_over = self._goes_over
            self.finish()

    def read(self) -> Iterator[object]:
        """Read a pass batch by batch, for an evaluation."""
        batches, cut = self.order.draw(self._begin), self.current.cut
        return batches if cut is None else self._read_shared(batches, cut)

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
        state, passes, put_back_data = self.reading_state(), self.at.passes, self.current.bookmark()

        def put_back() -> None:
            if not passes:  # Persistent workers draw their seed when they are started.
                self.close()
            self.load_reading_state(state)
            put_back_data()

        return put_back

    def __iter__(self) -> Iterator[object]:
        """Read a pass for a hook: it is not counted and does not disturb the current pass."""
        side_pass = Stream(
            self.current.data, self.name, seed_samples=self._seed_samples, limit=self.limit
        )
        self._side_passes.append(side_pass)
        try:
            yield from side_pass.read()
        finally:
            side_pass.close()
            self._side_passes.remove(side_pass)

    def _begin(self) -> Iterator[object]:
        """Start a pass at its first batch."""
        at, generators = self.at, self.current.reader.generators()
        # The states of GPUs are those of one rank.
        at.began = began = GeneratorStates.now(generators, gpus=self.order.shared is None)
        if self._sets_epoch:
            self.current.set_epoch(at.passes)
        if at.passes:
            self.current.monitor.warn_if_reordered()
        at.passes += 1
        if self._note_pass is not None:
            self._note_pass()
        return self._read_from(began, generators)

    def _continue(self) -> Iterator[object]:
        """Continue in the middle of a pass, in the order that the pass had."""
        at, generators = self.at, self.current.reader.generators()
        now = GeneratorStates.now(generators)
        if self._sets_epoch:
            self.current.set_epoch(at.passes - 1)
        # The order is drawn again from the generators as they were when the pass began. Then they
        # continue from the checkpoint, so that the model draws what it would have drawn.
        began = at.began or now
        began.restore(generators)
        batches = self._read_from(began, generators)
        now.restore(generators)
        return batches

    def _read_from(
        self, began: GeneratorStates, generators: Sequence[torch.Generator]
    ) -> Iterator[object]:
        """Start a pass where it stands; it ends at the limit, if there is one."""
        at = self.at
        left = None if self.limit is None else self.batches_left or 0  # Known where it is limited.
        start = PassStart(
            skip=at.batches,
            samples=at.samples_before,
            key=began.key(at.passes),
            passes=at.passes,
            rewind=partial(began.restore, generators),
            most=left,
            restarts_workers=self._restarts_workers,
        )
        self._restarts_workers = False
        batches = self.current.reader.begin(start)
        return batches if left is None else islice(batches, left * self.parts_of_batch)

    def finish(self) -> None:
        """Leave the current pass: the next one starts at the first batch."""
        at, current = self.at, self.current
        at.batches = at.samples_before = 0
        at.began = None
        if current.next is not None or current.expects_next:
            self._switch(current.take_next())

    def leave(self) -> None:
        """Leave the pass that is read group by group, wherever it is."""
        if self.open_pass.groups is not None and self.batches_left != 0:
            self.current.reader.close()  # Its workers have loaded batches that nobody wants.
        self.open_pass.groups = None
        self.finish()

    def close(self) -> None:
        """End the workers; a later pass starts them again, from the same position."""
        for side_pass in self._side_passes:
            side_pass.close()
        # An iterator whose workers are gone cannot continue, so it is made again.
        if self.current.reader.close():
            self.open_pass.groups = None

    # --- several ranks ----------------------------------------------------------------------------

    def share_among(
        self,
        rank: int,
        size: int,
        order: GeneratorStates | None = None,
        *,
        logical: int = 0,
        is_training: bool = True,
    ) -> None:
        """Read one rank's part of the data from now on; call it before anything is read.

        Args:
            rank: The number of the rank, from 0.
            size: How many ranks there are.
            order: From where all ranks draw the order of passes; by default from the generators as
                they are now, which must then be equal on all ranks.
            logical: Into how many logical ranks each batch is cut, if the run has those.
            is_training: Whether each rank needs at least one sample of a full batch.
        """
        self.current.share_among(rank, size, logical=logical, is_training=is_training)
        self.order.now = order or self.order.now or GeneratorStates.now(gpus=False)

    def shares(self) -> list[Share] | None:
        """Return the shares of the last group, or of the last batch of an evaluation.

        None if the data is not shared.
        """
        return None if self.current.cut is None else self._shares

    def order_state(self) -> dict[str, object]:
        """Return all that orders are drawn from, so that the other ranks can draw the same."""
        order = self.order.now or GeneratorStates.now(gpus=False)
        return {
            "order": order.state,
            **self.current.reader.state(self.at.batches, "generators", "samplers"),
        }

    def load_order_state(self, state: Mapping[str, object]) -> None:
        """Take over what `order_state` returned on another rank."""
        self.order.load_state_dict(state)
        self.current.reader.load(state)

    # --- its state --------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, object]:
        """Return the position in the data; the size of the state does not grow with it."""
        current, at = self.current, self.at
        if current.awaited is not None:
            return {**current.awaited, **current.state_dict(), "replaced": True}
        current.monitor.warn_if_reordered()
        return {
            **current.state_dict(),
            **self.reading_state(),
            **at.state_dict(),
            **current.reader.state(at.batches, "loader"),
            "samples": current.samples_read(at),
            "measures": current.measures(self.limit),
            "orders": current.monitor.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go to a position that `state_dict` returned; warn if the data has changed."""
        if "streams" in state:
            raise CheckpointError(
                "The checkpoint was made with several streams of training data, and train_data is "
                "one: give the streams again, or begin a new run with load_from=."
            )
        current, at = self.current, self.at
        if current.awaits(state):
            self._load_order(state)  # Ranks draw the orders of all data from it.
            return
        self.load_reading_state(state)
        self.open_pass.groups = None
        at.load_state_dict(state)
        current.compare(state, at, self.limit)
        # The other parts are there already; the workers have taken theirs.
        current.reader.load({key: state[key] for key in ("loader", "stream") if key in state})

    def reading_state(self) -> dict[str, object]:
        """Return what the next whole pass depends on, except for the process's generators."""
        return {
            "passes": self.at.passes,
            **self.order.state_dict(),
            **self.current.reader.state(self.at.batches, "generators", "workers"),
        }

    def load_reading_state(self, state: Mapping[str, object]) -> None:
        """Take back what `reading_state` returned."""
        self.at.passes = cast("int", state["passes"])
        self._load_order(state)
        self.current.reader.load({"generators": state["generators"]})
        workers = cast("Mapping[str, object] | None", state.get("workers"))
        continues = self.at.passes > 0 and getattr(self.current.data, "persistent_workers", False)
        self.load_worker_states(workers, is_needed=bool(state.get("position")) or continues)

    def worker_states(self) -> dict[str, object] | None:
        """Return the random numbers of this rank's workers, if they are kept and needed."""
        state = self.current.reader.state(self.at.batches, "workers")
        return cast("dict[str, object] | None", state.get("workers"))

    def load_worker_states(self, state: Mapping[str, object] | None, *, is_needed: bool) -> None:
        """Take back what `worker_states` returned; warn if they are needed and cannot be used."""
        self._restarts_workers = False
        missing = self.current.reader.load({"workers": state})
        if missing is not None and (is_needed or state is not None):
            _log.warning("This resume of %s is not exact: %s.", self.name, missing)

    def _load_order(self, state: Mapping[str, object]) -> None:
        self.order.load_state_dict(state)
        if "order" in state and self.current.cut is None:
            self.share_among(0, 1)


def open_streams(
    data: Batches | Mapping[str, Batches] | None,
    name: str,
    *,
    seed_samples: SeedSamples = True,
    limit: int | None = None,
) -> dict[str, Stream]:
    """Make streams of evaluation data: one without a name, or several with names.

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
            key: Stream(*stream, seed_samples=seed_samples, limit=limit)
            for key, stream in streams.items()
        }
