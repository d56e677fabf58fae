"""The random numbers of workers as torch seeds them, kept so that a resume can repeat them.

The state of a worker's generators after a batch travels with the batch to the training process,
which keeps the newest of each worker. A worker that is started again on a resume continues from it.
The batches are those of a plain `DataLoader`, number for number: batch ``k`` of a pass comes from
the worker ``k % num_workers``, also after a resume in the middle of the pass.
"""

from __future__ import annotations

import random
import struct
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

from hookloop.data.position.indices import PassStart
from hookloop.data.random.generators import FILL, GAUSS, WORDS, cached_generators
from hookloop.data.reading.none_samples import NamingCollate
from hookloop.data.reading.workers import ShieldedInit
from hookloop.errors import DataError

LONGEST_GROUP = 64
"""Batches of a group that may have been read when the reading of the group fails."""

OUT_OF_ORDER = (
    "in_order=False returns its batches as soon as they are loaded, so that their order differs "
    "from run to run"
)
"""Why a loader is not exact whose batches come in any order."""

_MIDDLE = FILL + 4 + GAUSS
"""Bytes of Python's generator, and of NumPy's."""


class WorkerStates:
    """The newest states of the workers of a loader, as of the batches that training has received.

    Args:
        loader: The user's loader, with workers.
    """

    def __init__(self, loader: DataLoader[object]) -> None:
        self._loader = loader
        self._size = loader.num_workers
        self._init = CarriedInit(loader.worker_init_fn)
        self._newest: dict[int, bytes] = {}
        self._seeded: Tensor | None = None  # Where the seed of persistent workers was drawn.
        self._received = 0
        self._restarts = 0  # By hooks that have changed the loader.
        self._is_resumed = False
        self._before: deque[tuple[int, bytes | None]] = deque(maxlen=LONGEST_GROUP)

    def changes(self, rank: int = 0) -> dict[str, object]:
        """Return what a copy of the loader needs other than the loader itself."""
        self._init.rank = rank
        return {
            "worker_init_fn": self._init,
            "collate_fn": CarryingCollate(cast("Collate", self._loader.collate_fn)),
        }

    def begin(self, copied: DataLoader[object], start: PassStart) -> Iterator[object]:
        """Start a pass; workers that are started for it continue where they were.

        Persistent workers that run have to be at the beginning of a pass.
        """
        is_late = self._loader.persistent_workers and start.passes > 1
        if copied.__dict__["_iterator"] is None:
            is_inside = start.skip > 0 or start.samples > 0
            self._newest = self._after(start.skip) if is_inside or is_late else {}
            self._init.states = self._newest
            batches = self._start_workers(copied, start.skip % self._size, is_late=is_late)
        else:
            batches = iter(copied)
        self._received = start.skip
        self._before.clear()
        self._is_resumed = False
        return batches

    def follow(self, before: WorkerStates) -> None:
        """Take the place of workers that a hook has ended by a change of the loader.

        A hook makes its change again in a resumed run. If the workers had been started for it when
        the checkpoint was made, they continue; otherwise those that follow draw their own seed.
        """
        if not (before._is_resumed and before._restarts):
            self._restarts = before._restarts + 1
        elif before._size == self._size:
            self._newest, self._seeded = before._newest, before._seeded
            self._restarts = before._restarts

    def _start_workers(
        self, copied: DataLoader[object], first: int, *, is_late: bool
    ) -> Iterator[object]:
        changed: dict[str, object] = {}
        if first:
            changed["_get_iterator"] = lambda: RotatedPass(copied, first)
        if not is_late:
            own = self._loader.generator or torch.default_generator
            self._seeded = own.get_state() if self._loader.persistent_workers else None
        elif self._seeded is not None:
            # The same seed again, although the generators have moved on.
            changed["generator"] = again = torch.Generator()
            again.set_state(self._seeded)
        attributes = copied.__dict__
        before = {name: attributes[name] for name in changed if name in attributes}
        attributes.update(changed)
        try:
            return iter(copied)
        finally:
            for name in changed:
                del attributes[name]
            attributes.update(before)

    def receive(self, sent: Sequence[object]) -> object:
        """Return the batch of what a worker has sent, and keep the state that came with it."""
        # With pinned memory it is a list, otherwise a tuple.
        batch, state = sent
        worker = self._received % self._size
        self._received += 1
        self._before.append((worker, self._newest.get(worker)))
        if state is not None:
            self._newest[worker] = cast("bytes", state)
        return batch

    def _after(self, position: int) -> dict[int, bytes]:
        """Return the states as they were after that many batches of the current pass."""
        states = dict(self._newest)
        if not position:  # Between two passes: all batches of the last one count.
            return states
        for _, (worker, before) in zip(
            range(self._received - position), reversed(self._before), strict=False
        ):
            states.pop(worker, None)
            if before is not None:
                states[worker] = before
        return states

    def state_dict(self, position: int) -> dict[str, object] | None:
        """Return what workers need to continue after that many batches; None if nothing."""
        is_persistent = self._loader.persistent_workers
        if not position and not is_persistent:  # The next pass has other workers.
            return None
        states = self._after(position)
        return {
            "states": [_as_tensor(states.get(worker)) for worker in range(self._size)],
            "seeded": self._seeded,
            "restarts": self._restarts,
        }

    def load_state_dict(self, state: Mapping[str, object] | None) -> str | None:
        """Restore what `state_dict` returned; return what is missing for an exact resume."""
        self._newest, self._seeded, self._received, self._restarts = {}, None, 0, 0
        self._before.clear()
        if state is None:
            return "the checkpoint does not hold the random numbers of its workers"
        saved = cast("list[Tensor | None]", state["states"])
        if len(saved) != self._size:
            return f"its number of workers is {self._size} and was {len(saved)}"
        newest = {n: one.numpy().tobytes() for n, one in enumerate(saved) if one is not None}
        seeded = cast("Tensor | None", state["seeded"])
        for one in newest.values():
            check_generators(one)
        if seeded is not None:
            torch.Generator().set_state(seeded)
        self._newest, self._seeded = newest, seeded
        # Files of earlier versions do not tell: workers that continue are at least like theirs.
        self._restarts, self._is_resumed = cast("int", state.get("restarts", 1)), True
        return None


def why_not_carried(loader: DataLoader[object]) -> str | None:
    """Return why the states of the workers of a loader cannot be kept, or None if they can."""
    if not loader.in_order:
        return OUT_OF_ORDER
    kind = type(loader)
    for name in ("__iter__", "_get_iterator"):
        # What it gives need not be what a worker has sent, nor be asked for one by one.
        if getattr(kind, name) is not getattr(DataLoader, name):
            return (
                f"{kind.__name__} has a method {name} of its own, so that the random numbers of "
                "its workers start again on resume"
            )
    return None


# --- in the worker -----------------------------------------------------------------------------

Collate = Callable[[Any], object]


class CarriedInit(ShieldedInit):
    """Prepares a worker, which then continues from the state that it is given, if any."""

    states: Mapping[int, bytes] = {}

    def __call__(self, worker: int) -> None:
        """Prepare the worker of this number."""
        super().__call__(worker)
        if worker in self.states:
            restore_generators(self.states[worker])


class CarryingCollate:
    """Makes a batch, and adds the state of the generators if that is not the same as before.

    Args:
        collate: The loader's own ``collate_fn``.
    """

    def __init__(self, collate: Collate) -> None:
        self.collate = NamingCollate(collate)
        self._last = b""

    def __call__(self, samples: object) -> tuple[object, bytes | None]:
        """Make a batch."""
        batch = self.collate(samples)
        state = read_generators()
        if state == self._last:
            return batch, None
        self._last = state
        return batch, state


class RotatedPass(_MultiProcessingDataLoaderIter):
    """A pass whose first batch comes from another worker than the first.

    Args:
        loader: The loader.
        first: The number of that worker.
    """

    def __init__(self, loader: DataLoader[object], first: int) -> None:
        self._first = first
        super().__init__(loader)

    def _next_index(self) -> object:
        # torch asks for an index first, and then for the worker that gets it. Only the first pass
        # of persistent workers is rotated.
        first, self._first = self._first, 0
        for _ in range(first):
            next(self._worker_queue_idx_cycle)
        return super()._next_index()  # type: ignore[no-untyped-call]


def read_generators() -> bytes:
    """Return the state of Python's, NumPy's and torch's generators of this process."""
    python, numpy, torch_cpu = cached_generators()
    state = torch_cpu.get_state()
    parts = _python_bytes(python.get_state()), _numpy_bytes(numpy.get_state())
    return b"".join((*parts, state.numpy().tobytes()))


def restore_generators(state: bytes) -> None:
    """Let the generators continue from what `read_generators` returned."""
    python, numpy = state[:_MIDDLE], state[_MIDDLE : 2 * _MIDDLE]
    position, *words = struct.unpack_from(f"{WORDS}I", python)
    has_gauss, gauss = struct.unpack_from("i4xd", python, 4 * WORDS)
    random.setstate((3, (*words, position), gauss if has_gauss else None))
    *keys, position = struct.unpack_from(f"{WORDS}I", numpy)
    held = struct.unpack_from("i4xd", numpy, 4 * WORDS)
    np.random.set_state(("MT19937", np.array(keys, np.uint32), position, *held))
    rest = bytearray(state[2 * _MIDDLE :])  # torch warns about bytes that cannot be written to.
    torch.set_rng_state(torch.frombuffer(rest, dtype=torch.uint8))


def check_generators(state: bytes) -> None:
    """Reject a state that no generator could have had: NumPy does not check it."""
    places = struct.unpack_from("I", state), struct.unpack_from("I", state, _MIDDLE + FILL)
    if any(place >= WORDS for (place,) in places):
        raise ValueError("the state of a worker's generators is damaged")
    rest = bytearray(state[2 * _MIDDLE :])
    torch.Generator().set_state(torch.frombuffer(rest, dtype=torch.uint8))


def _python_bytes(state: Any) -> bytes:  # noqa: ANN401 - what the access returns
    if len(state) == 2:
        words, gauss = state
    else:  # Of the public function: the position comes last.
        _, numbers, gauss = state
        words = struct.pack(f"{WORDS}I", numbers[-1], *numbers[:-1])
    held = bytes(GAUSS) if gauss is None else struct.pack("qd", 1, gauss)
    return cast("bytes", words) + held


def _numpy_bytes(state: Any) -> bytes:  # noqa: ANN401 - what the access returns
    if isinstance(state, Mapping):
        raise DataError(
            "A worker has replaced NumPy's bit generator, whose state cannot be kept: leave it to "
            "NumPy, or give seed_samples=True or False."
        )
    if len(state) == 2:
        words, held = state
        return cast("bytes", words + held)
    _, keys, position, has_gauss, gauss = state
    return struct.pack(f"={WORDS}Iqd", *keys.tolist(), position, has_gauss, gauss)


def _as_tensor(state: bytes | None) -> Tensor | None:
    return None if state is None else torch.frombuffer(bytearray(state), dtype=torch.uint8)
