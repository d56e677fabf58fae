"""The state of every random number generator of this process, as plain containers."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Self, cast

import numpy as np
import torch
from torch import Tensor

from hookloop.data.random.per_sample import derive_key
from hookloop.objects.values import is_equal


def seed_all(seed: int) -> None:
    """Seed Python's, NumPy's and torch's generators."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def seed_rank(rank: int) -> None:
    """Give the generators of a rank other numbers than those of the others.

    They follow from the state of torch's generator, which has to be the same on all ranks, and
    from the rank. The first rank keeps the numbers of a single process.
    """
    if rank:
        seed_all(derive_key([torch.get_rng_state()], rank) % 2**63)


class GeneratorStates:
    """The state of the process's generators at one moment, and of some generators of a loader.

    >>> now = GeneratorStates.now()
    >>> first = torch.rand(1)
    >>> now.restore()
    >>> bool(torch.rand(1) == first)
    True
    """

    def __init__(self, state: Mapping[str, object]) -> None:
        self.state = dict(state)
        self.order: GeneratorStates | None = None
        """From where the orders of data are drawn, where ranks share it."""

    @classmethod
    def now(cls, generators: Sequence[torch.Generator] = (), *, gpus: bool = True) -> Self:
        """Read the states of Python's, NumPy's, torch's, the GPUs' and the given generators."""
        kind, keys, position, has_gauss, gauss = np.random.get_state()
        state: dict[str, object] = {
            "python": random.getstate(),
            # As a tensor, because a checkpoint holds no arrays of NumPy.
            "numpy": (kind, torch.from_numpy(np.array(keys)), position, has_gauss, gauss),
            "torch": torch.get_rng_state(),
            "generators": [generator.get_state() for generator in generators],
        }
        if gpus and torch.cuda.is_available():
            state["cuda"] = torch.cuda.get_rng_state_all()
        if gpus and torch.backends.mps.is_available():
            state["mps"] = torch.mps.get_rng_state()
        return cls(state)

    def moved(self, later: GeneratorStates) -> list[str]:
        """Return which of Python's, NumPy's and torch's generators stand elsewhere later."""
        names = ("torch", "numpy", "python")
        return [name for name in names if not is_equal(self.state[name], later.state[name])]

    def restore(self, generators: Sequence[torch.Generator] = (), *, gpus: bool = True) -> None:
        """Let the generators continue from that moment."""
        version, internal, gauss_next = cast("tuple[int, list[int], float]", self.state["python"])
        random.setstate((version, tuple(internal), gauss_next))
        kind, keys, position, has_gauss, gauss = cast(
            "tuple[str, Tensor, int, int, float]", self.state["numpy"]
        )
        np.random.set_state((kind, keys.numpy(), position, has_gauss, gauss))
        torch.set_rng_state(cast("Tensor", self.state["torch"]))
        saved = cast("list[Tensor]", self.state["generators"])
        # Not strict: the resumed run may have another loader, with more or fewer generators.
        for generator, state in zip(generators, saved, strict=False):
            generator.set_state(state)
        if not gpus:
            return
        # A checkpoint of a GPU may be continued on a CPU, and the other way round.
        if "cuda" in self.state and torch.cuda.is_available():
            torch.cuda.set_rng_state_all(cast("list[Tensor]", self.state["cuda"]))
        if "mps" in self.state and torch.backends.mps.is_available():
            torch.mps.set_rng_state(cast("Tensor", self.state["mps"]))

    def key(self, count: int) -> int:
        """Condense this moment and a number into a key from which seeds are derived."""
        own = cast("list[Tensor]", self.state["generators"])
        return derive_key([cast("Tensor", self.state["torch"]), *own], count)


@contextmanager
def generators_kept(generators: Sequence[torch.Generator] = ()) -> Iterator[None]:
    """Set the generators of the process, and the given ones, back to where they were."""
    states = GeneratorStates.now(generators)
    try:
        yield
    finally:
        states.restore(generators)
