"""A random stream for what draws during a pass, in between the numbers that the model draws."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any

from hookloop.data.random.generators import process_generators
from hookloop.data.random.per_sample import seed_process
from hookloop.data.random.states import GeneratorStates


class RandomStream:
    """A context with its own random stream: the global generators continue where it last ended.

    >>> import random
    >>> stream = RandomStream(3)
    >>> with stream:
    ...     first = random.random()
    >>> with stream:
    ...     second = random.random()
    >>> random.seed(3)
    >>> (first, second) == (random.random(), random.random())
    True
    """

    def __init__(self, seed: int) -> None:
        # Without those of GPUs: no sampler draws from them, and reading them waits for the GPU.
        self._generators = process_generators()
        self._outside: tuple[Any, Any, Any] = ((), (), ())
        before = [one.get_state() for one in self._generators]
        seed_process(seed)
        python, numpy, torch_cpu = self._generators
        self._inside = python.get_state(), numpy.get_state(), torch_cpu.get_state()
        for generator, state in zip(self._generators, before, strict=True):
            generator.set_state(state)

    def state_dict(self) -> dict[str, object]:
        """Return the state of the stream."""
        with self:
            return GeneratorStates.now(gpus=False).state

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Continue the stream from what `state_dict` returned."""
        with self:
            GeneratorStates(state).restore()

    # Entered for every batch, so the three generators are written out instead of looped over.
    def __enter__(self) -> None:
        python, numpy, torch_cpu = self._generators
        inside = self._inside
        self._outside = python.get_state(), numpy.get_state(), torch_cpu.get_state()
        python.set_state(inside[0])
        numpy.set_state(inside[1])
        torch_cpu.set_state(inside[2])

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        python, numpy, torch_cpu = self._generators
        outside = self._outside
        self._inside = python.get_state(), numpy.get_state(), torch_cpu.get_state()
        python.set_state(outside[0])
        numpy.set_state(outside[1])
        torch_cpu.set_state(outside[2])
