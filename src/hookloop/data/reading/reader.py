"""What starts passes over some data, and keeps what they depend on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal, cast

import torch

from hookloop.data.ranks.cut import Cut

if TYPE_CHECKING:
    from torch import Tensor

    from hookloop.data.position.indices import NoteIndices, PassStart
    from hookloop.data.random.workers import WorkerStates
    from hookloop.data.reading.loader_changes import LoaderChanges
    from hookloop.data.reading.samplers import SamplerStates, State

Part = Literal["generators", "samplers", "workers", "loader"]
"""What a pass is read from: the loader's own generators, its samplers as a whole (for another rank,
or to undo a pass), the random numbers of its workers, and where the loader is in the pass."""


class Reader(ABC):
    """A way to start passes over some data.

    Attributes:
        inexact: Why a resumed pass may differ, or None if it does not.
        counts_samples: Whether a pass can continue after any number of samples, so that the batch
            size may change.
    """

    inexact: str | None = None
    counts_samples = False
    _samplers: SamplerStates
    _carried: WorkerStates | None = None  # The states of its workers, if they are kept.
    _changes: LoaderChanges | None = None  # What hooks change in the loader, if it is one.

    @abstractmethod
    def begin(self, start: PassStart) -> Iterator[object]:
        """Start a pass."""

    @abstractmethod
    def share(self, cut: Cut, *, is_shard: bool) -> None:
        """Read one rank's part from now on; a shard is already the data of one rank."""

    @abstractmethod
    def generators(self) -> list[torch.Generator]:
        """Return the generators that the order depends on, except for the process's own."""

    @property
    def draws_from(self) -> list[str] | None:
        """The process's generators that a user's sampler drew the last order from, if known."""
        return None

    def note_indices(self, note: NoteIndices) -> bool:
        """Tell somebody of the indices of each batch from the next pass on; False without any."""
        return False

    def state(self, position: int, *parts: Part) -> dict[str, object]:
        """Return some parts of what is read after that many batches of the pass depends on."""
        state: dict[str, object] = {}
        if "generators" in parts:
            state["generators"] = [one.get_state() for one in self.generators()]
        if "samplers" in parts:
            state["samplers"] = self._samplers.whole()
        if "workers" in parts and self._carried is not None:
            workers = self._carried.state_dict(position)
            state |= {} if workers is None else {"workers": workers}
        return state | self._loader_state(position) if "loader" in parts else state

    def load(self, state: Mapping[str, object]) -> str | None:
        """Restore the parts that a state has; return what is missing for an exact resume."""
        if "generators" in state:
            saved = cast("list[Tensor]", state["generators"])
            for generator, one in zip(self.generators(), saved, strict=False):
                generator.set_state(one)
        if "samplers" in state:
            self._samplers.restore(cast("State", state["samplers"]))
        if "loader" in state:
            self._load_loader(state)
        if "workers" not in state:
            return None
        return self._load_workers(cast("Mapping[str, object] | None", state["workers"]))

    @abstractmethod
    def close(self) -> bool:
        """End the processes that passes have started; return whether there were any."""

    @abstractmethod
    def _loader_state(self, position: int) -> dict[str, object]:
        """Return where the loader is, under the key ``loader``."""

    @abstractmethod
    def _load_loader(self, state: Mapping[str, object]) -> None:
        """Restore what `_loader_state` returned."""

    def _load_workers(self, state: Mapping[str, object] | None) -> str | None:
        if self._carried is None:
            return None if state is None else _NO_WORKERS_KEPT
        self.close()  # Workers that run are somewhere else.
        missing = self._carried.load_state_dict(state)
        if state is not None and self._changes is not None:
            self._changes.expect_workers()
        return missing


_NO_WORKERS_KEPT = (
    "the checkpoint holds the random numbers of workers: give seed_samples='workers' and as many "
    "workers as before"
)
