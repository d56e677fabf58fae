"""From where the order of a pass is drawn.

Ranks that share data draw the same orders, each from generators that are equal on all of them,
because only orders advance them: what a model draws, such as dropout, differs from rank to rank.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar, cast

from hookloop.data.random.states import GeneratorStates

T = TypeVar("T")


class SharedGenerators:
    """The generators that are equal on all ranks, as they are now; one object for a whole run."""

    def __init__(self, now: GeneratorStates) -> None:
        self.now = now


class Order:
    """From where a stream draws the order of its next pass.

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
