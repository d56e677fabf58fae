"""What the order of a pass over data is drawn from, small enough to be recorded for each pass."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

import torch
from torch import Tensor
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
)

from hookloop.data.random.states import GeneratorStates
from hookloop.data.reading.exactness import reason_inexact
from hookloop.data.reading.samplers import is_of_torch, samplers_of


def names_of_origin(
    data: Iterable[object], own: Sequence[torch.Generator], known: Sequence[str] | None = None
) -> list[str]:
    """Return which generators the order of a pass may be drawn from; none if it is fixed.

    Args:
        data: The data.
        own: The generators of its loader and samplers, which are named by their place.
        known: Those of the process from which a sampler of the user's drew the last order.
    """
    if not isinstance(data, DataLoader) or isinstance(data.dataset, IterableDataset):
        return [] if reason_inexact(data) is None else ["torch", "numpy", "python"]
    samplers = samplers_of(data)
    if not all(map(is_of_torch, samplers)):
        return [*_places(own), *(("torch", "numpy", "python") if known is None else known)]
    if all(isinstance(one, SequentialSampler | BatchSampler) for one in samplers):
        return []
    return _places(own) or ["torch"]


def _places(own: Sequence[torch.Generator]) -> list[str]:
    return [f"generator {number}" for number in range(len(own))]


def states_of(began: GeneratorStates, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the states of generators as they were when a pass began, as bytes.

    torch's are as ``get_state`` returns them. Those of Python and NumPy are 624 words of 32 bits,
    the position as another one, and the normal number that is held back, or NaN.
    """
    for name in names:
        kind, _, number = name.partition(" ")
        if kind == "python":
            _, words, gauss = cast("tuple[int, tuple[int, ...], float | None]", began.state[name])
            yield name, struct.pack("<625Id", *words, float("nan") if gauss is None else gauss)
        elif kind == "numpy":
            _, keys, position, has_gauss, gauss = cast(
                "tuple[str, Tensor, int, int, float]", began.state[name]
            )
            if len(keys) == 624:  # Of the Mersenne Twister; a program may have chosen another one.
                held = gauss if has_gauss else float("nan")
                yield name, struct.pack("<625Id", *keys.tolist(), position, held)
        elif kind == "generator":
            own = cast("list[Tensor]", began.state["generators"])
            yield name, own[int(number)].numpy().tobytes()
        else:
            yield name, cast("Tensor", began.state[name]).numpy().tobytes()


def draws_one_seed(data: Iterable[object]) -> bool:
    """Return whether torch's random sampler draws the order of a pass from one random number."""
    if not isinstance(data, DataLoader) or isinstance(data.dataset, IterableDataset):
        return False
    kinds = {type(one) for one in samplers_of(data)}
    random = [one for one in samplers_of(data) if type(one) is RandomSampler]
    own = data.generator is not None or any(one.generator is not None for one in random)
    return bool(random) and kinds <= {RandomSampler, BatchSampler} and not own


def first_seeds(began: GeneratorStates) -> list[int]:
    """Return the first two numbers that torch's generator gives: the loader's, and the sampler's.

    A loader with persistent workers draws none of its own after the first pass.
    """
    generator = torch.Generator()
    generator.set_state(cast("Tensor", began.state["torch"]))
    return [int(torch.empty((), dtype=torch.int64).random_(generator=generator)) for _ in range(2)]
