"""Data that hooks may replace during a run, and what a resume asks of them.

A checkpoint holds the position in the data, and not the data: a resumed run begins with what the
script or the config gives. So a hook that has replaced the data does it again after a resume,
before the first batch is read, and the position goes over to that data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import cast

from hookloop.data.exactness import SeedSamples
from hookloop.data.sample_order import OrderMonitor
from hookloop.data.shared_data import SharedData
from hookloop.errors import DataError
from hookloop.every import Counters

NoteLength = Callable[[int | None], None]

ADVICE = (
    "The hook that did it has to do it again after a resume, for example at before_train_epoch: "
    "'if run.progress.epoch >= 3 and not self.is_done'."
)


class ReplacedData(SharedData):
    """Data, and other data that takes its place.

    Args:
        data: A DataLoader, a list, any iterable.
        name: ``train_data``, ``val_data['clean']``, ...
        seed_samples: Whether the randomness of samples depends on their position.
        limit: The most batches of a pass that are read.
    """

    def __init__(
        self,
        data: Iterable[object],
        name: str,
        *,
        seed_samples: SeedSamples,
        limit: int | None = None,
    ) -> None:
        super().__init__(data, name, seed_samples=seed_samples, limit=limit)
        self.on_replaced: Callable[[], None] = lambda: None
        """Called when the data was replaced, and its generators with it."""
        self._note_length: Callable[[], None] = lambda: None
        self._monitor = OrderMonitor(data, name)
        self._groups: Iterator[list[object]] | None = None
        self._goes_over = False
        self._is_continuous = False  # Whether passes continue from one epoch to the next.
        self._is_replaced = False
        self._next_data: Iterable[object] | None = None  # From the next pass on.
        self._expects_next = False  # Whether a resumed run had other data for the next pass.
        self._awaited: Mapping[str, object] | None = None  # A state of data that is not there yet.

    def follow(self, progress: Counters, note_length: NoteLength | None) -> None:
        """Take part in a run.

        Args:
            progress: That of the run.
            note_length: Called with the number of batches of an epoch when the data is replaced;
                None if passes continue from one epoch to the next.
        """
        self._is_continuous = note_length is None
        if note_length is not None:
            self._note_length = lambda: note_length(self.num_batches)

    def replace(self, data: Iterable[object], *, now: bool = False) -> None:
        """Read other data from the next pass on, or at once in a training without epochs.

        After a resume, the first call brings back the data that a hook had replaced before.

        Args:
            data: The other data.
            now: Whether the current pass goes over to it with the next batch.
        """
        state, self._awaited = self._awaited, None
        if state is not None:
            self._switch(data)
            self._take_over(state)
            return
        self._expects_next = False
        is_inside = self.at.is_inside
        if is_inside and not (now or self._is_continuous):
            # Made now, so that what is not data is rejected in the hook's own line.
            self._next_data = SharedData(data, self.name, seed_samples=self._seed_samples).data
            return
        self._goes_over = is_inside and self._groups is None
        if is_inside:
            self._reader.close()  # Nothing reads from it any more.
        self._next_data = self._groups = None
        self._switch(data)
        self.finish()  # Now: a checkpoint of this iteration is one of the new data.

    def _switch(self, data: Iterable[object]) -> None:
        self._replace_data(data)
        self._monitor = OrderMonitor(data, self.name)
        self._is_replaced = True
        self._note_length()
        self.on_replaced()

    def _take_over(self, state: Mapping[str, object]) -> None:
        """Go on in data that is there again after a resume."""
        if state["position"] or state.get("samples_before"):
            self.load_state_dict(state)
        else:  # Between two passes it may be new data as well, with generators of its own.
            self.at.passes = cast("int", state["passes"])

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go to a position."""
        raise NotImplementedError

    def finish(self) -> None:
        """Leave the current pass: the next one starts at the first batch."""
        self.at.leave()
        other, self._next_data = self._next_data, None
        if other is not None:
            self._switch(other)
        elif self._expects_next:
            raise DataError(
                f"Before the checkpoint, {self.name} was replaced for the time after the pass that "
                f"has ended now, and has not been replaced since. {ADVICE}"
            )

    def check_is_there(self) -> None:
        """Reject a resume that would read other data than the run has read."""
        if self._awaited is not None:
            raise DataError(
                f"{self.name} was replaced by a hook before the checkpoint, and has not been "
                f"replaced since: the run would continue with other data. {ADVICE}"
            )

    def replacement_state(self) -> dict[str, object]:
        """Return what was replaced, for the next run to expect."""
        waits = self._next_data is not None or self._expects_next
        state = {"replaced": self._is_replaced, "next_replaced": waits}
        return {name: True for name, flag in state.items() if flag}

    def _is_of_other_data(self, state: Mapping[str, object]) -> bool:
        """Return whether a state is of data that a hook has to bring first; keep it until then."""
        self._expects_next = bool(state.get("next_replaced"))
        if not state.get("replaced") or self._is_replaced:
            return False
        self._awaited = state
        self._load_order(state)  # Ranks draw the orders of all data from it.
        return True
