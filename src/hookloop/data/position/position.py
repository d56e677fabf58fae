"""How far a pass over data is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import takewhile
from typing import TypeVar, cast

from hookloop.data.random.states import GeneratorStates

Size = int | Callable[[], int]
"""How many microbatches a group has; a function where it changes."""
Groups = Iterator[list[object]]


class OpenPass:
    """The pass that is read a group at a time; it continues from one epoch to the next.

    Attributes:
        groups: What is left of it; None if the next group starts a new one.
    """

    def __init__(self) -> None:
        self.groups: Groups | None = None

    def take(
        self, start: Callable[[Size], Groups], size: Size, *, restarts: bool = True
    ) -> list[object]:
        """Return the next group; an empty one at the end of a pass, unless a new one starts."""
        # The first try may find the end of a pass; the second starts a new one.
        for _ in range(1 + restarts):
            self.groups = self.groups or start(size)
            group = next(self.groups, None)
            if group is not None:
                return group
            self.groups = None
        return []

    def epoch(self, start: Callable[[Size], Groups], size: Size, iterations: int | None) -> Groups:
        """Return so many groups, from passes that follow each other, or those of one pass."""
        if iterations is None:
            return start(size)
        return takewhile(bool, (self.take(start, size) for _ in range(iterations)))


T = TypeVar("T")


class SharedGenerators:
    """The generators that are equal on all ranks, as they are now; one object for a whole run."""

    def __init__(self, now: GeneratorStates) -> None:
        self.now = now


class Order:
    """From where a stream draws the order of its next pass.

    Ranks that share data draw the same orders, each from generators that are equal on all of them,
    because only orders advance them: what a model draws, such as dropout, differs between ranks.

    Attributes:
        shared: What ranks share; None where the process's own generators are drawn from.
    """

    def __init__(self) -> None:
        self.shared: SharedGenerators | None = None

    @property
    def now(self) -> GeneratorStates | None:
        """The shared generators as they are; None for the process's own."""
        return self.shared.now if self.shared is not None else None

    @now.setter
    def now(self, now: GeneratorStates) -> None:
        if self.shared is None:
            self.shared = SharedGenerators(now)
        self.shared.now = now

    def draw(self, begin: Callable[[], T]) -> T:
        """Begin a pass from the shared generators, and keep the process's own."""
        if self.shared is None:
            return begin()
        own = GeneratorStates.now(gpus=False)
        self.shared.now.restore(gpus=False)
        try:
            begun = begin()
            self.shared.now = GeneratorStates.now(gpus=False)
        finally:
            own.restore()
        return begun

    def state_dict(self) -> dict[str, object]:
        """Return the shared generators, if there are any."""
        return {} if self.shared is None else {"order": self.shared.now.state}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Continue from what `state_dict` returned."""
        if "order" in state:
            self.now = GeneratorStates(cast("dict[str, object]", state["order"]))


class Position:
    """How far the current pass is, and from which generators it drew its order.

    Attributes:
        passes: How many have begun.
        batches: Batches taken from the current one; 0 if there is none.
        samples_before: Samples that it had given when the batch size changed.
        began: The generators as they were when it began.
    """

    def __init__(self) -> None:
        self.passes = 0
        self.batches = 0
        self.samples_before = 0
        self.began: GeneratorStates | None = None

    @property
    def is_inside(self) -> bool:
        """Whether a pass is begun and not left."""
        return bool(self.batches or self.samples_before)

    def recount(self, samples: int) -> None:
        """Go to a position after so many samples of the pass: its batches have another size now."""
        self.batches, self.samples_before = 0, samples

    def __str__(self) -> str:
        if self.samples_before and not self.batches:
            return f"after {self.samples_before} samples of the pass and reads the others once"
        return f"at batch {self.batches} of it"

    def state_dict(self) -> dict[str, object]:
        """Return where the pass is; the number of passes is a state of every stream."""
        return {
            "position": self.batches,
            "samples_before": self.samples_before,
            "began": self.began.state if self.began is not None else None,
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go to what `state_dict` returned."""
        self.batches = cast("int", state["position"])
        self.samples_before = cast("int", state.get("samples_before", 0))
        began = cast("dict[str, object] | None", state["began"])
        self.began = GeneratorStates(began) if began is not None else None
