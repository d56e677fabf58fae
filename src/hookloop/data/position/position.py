"""How far a pass over data is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from hookloop.data.random.states import GeneratorStates


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
