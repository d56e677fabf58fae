"""The base class of glazes, their registry, and the ten that kiln brings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hookloop import Hook
from hookloop.dialects import Catalogued, Names, Waiting, append
from hookloop.hooks import AverageWeights, SaveCheckpoint

if TYPE_CHECKING:
    from hookloop_kiln.kiln import Kiln


class Glaze:
    """The base class; its methods do nothing, so they are not called."""

    shelf = 5

    def light(self, kiln: Any) -> None: ...  # noqa: ANN401 - the kiln, or the facade
    def fill(self, kiln: Any, batch: Any) -> None: ...  # noqa: ANN401
    def turned(self, kiln: Any, batch: Any, loss: Any) -> None: ...  # noqa: ANN401
    def cool(self, kiln: Any) -> None: ...  # noqa: ANN401
    def inspect(self, kiln: Any, marks: Mapping[str, float]) -> None: ...  # noqa: ANN401
    def reglaze(self, kiln: Any) -> None: ...  # noqa: ANN401
    def cracked(self, kiln: Any, error: BaseException) -> None: ...  # noqa: ANN401
    def empty(self, kiln: Any) -> None: ...  # noqa: ANN401


GLAZES = Names("kiln's registry of glazes", f"{__name__}:CATALOGUE")
"""``@GLAZES.register()`` registers a class; a config then names it."""


class CountPieces(Glaze):
    """Count the samples of a training; a resumed run continues the count."""

    def __init__(self) -> None:
        self.pieces = 0

    def turned(self, kiln: Kiln, batch: Any, loss: Any) -> None:  # noqa: ANN401
        self.pieces += len(batch[0])

    def state_dict(self) -> dict[str, int]:
        return {"pieces": self.pieces}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        self.pieces = state["pieces"]


class CoolDown(Glaze):
    """Lower the heat after each firing, before all others see it."""

    shelf = 9

    def __init__(self, factor: float = 0.5) -> None:
        self.factor = factor

    def cool(self, kiln: Kiln) -> None:
        kiln.heat *= self.factor


class Journal(Glaze):
    """Write a line after each firing."""

    shelf = 1

    def __init__(self, file: str = "journal.txt") -> None:
        self.file = file

    def cool(self, kiln: Kiln) -> None:
        append(kiln.shed / self.file, f"firing {kiln.firing}: heat {kiln.heat:g}\n")


class QuenchAt(Glaze):
    """End the training at a loss."""

    def __init__(self, loss: float) -> None:
        self.loss = loss

    def turned(self, kiln: Kiln, batch: Any, loss: Any) -> None:  # noqa: ANN401
        if float(loss.detach()) < self.loss:
            kiln.quench(f"the loss is below {self.loss}")


class PeekEvery(Glaze):
    """Validate after some turns."""

    def __init__(self, turns: int) -> None:
        self.turns = turns

    def turned(self, kiln: Kiln, batch: Any, loss: Any) -> None:  # noqa: ANN401
        if (kiln.turn + 1) % self.turns == 0:
            kiln.peek()


class MeanLoss(Glaze):
    """Mark the mean loss of each firing; the losses are read once, at its end."""

    shelf = 8

    def __init__(self) -> None:
        self._losses = Waiting()
        self._sum, self._count = 0.0, 0

    def turned(self, kiln: Kiln, batch: Any, loss: Any) -> None:  # noqa: ANN401
        if self._losses.add(loss):
            self._read()

    def cool(self, kiln: Kiln) -> None:
        self._read()
        kiln.marks.mark("mean_loss", self._sum / max(1, self._count))
        self._sum, self._count = 0.0, 0

    def state_dict(self) -> dict[str, float]:
        self._read()  # A checkpoint may be made in the middle of a firing.
        return {"sum": self._sum, "count": self._count}

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        self._losses.read()  # Those of iterations that a rewind takes back.
        self._sum, self._count = state["sum"], int(state["count"])

    def _read(self) -> None:
        numbers = self._losses.read()
        self._sum, self._count = self._sum + math.fsum(numbers), self._count + len(numbers)


class Shelve(Glaze):
    """Save after a validation that was better than all before it, and mark by how much."""

    def __init__(self, mark: str = "val/loss") -> None:
        self.mark = mark
        self.best = math.inf

    def inspect(self, kiln: Kiln, marks: Mapping[str, float]) -> None:
        if marks[self.mark] < self.best:
            self.best = marks[self.mark]
            kiln.shelve(f"good_firing_{kiln.firing}")

    def state_dict(self) -> dict[str, float]:
        return {"best": self.best}

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        self.best = state["best"]


class Stir(Glaze):
    """Count how often the glaze was stirred: after every second turn."""

    def __init__(self) -> None:
        self.stirred = 0

    def reglaze(self, kiln: Kiln) -> None:
        self.stirred += 1


class Sweep(Glaze):
    """Note how a training ended, also one that cracked."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def light(self, kiln: Kiln) -> None:
        self.notes.append(f"lit at {kiln.heat:g}")

    def cracked(self, kiln: Kiln, error: BaseException) -> None:
        self.notes.append(f"cracked: {error}")

    def empty(self, kiln: Kiln) -> None:
        self.notes.append(f"emptied after {kiln.pieces} pieces")


class EvenGlaze(Glaze, Catalogued):
    """Average the weights and save both; native hooks do the work."""

    def __init__(self, thickness: float = 0.9) -> None:
        self.thickness = thickness

    def native_hooks(self) -> Sequence[Hook]:
        average = AverageWeights(momentum=1 - self.thickness).named("even_glaze")
        return [average, SaveCheckpoint(every="1 epoch").named("even_glaze_save")]


CATALOGUE = {
    kind.__name__: f"{__name__}:{kind.__name__}"
    for kind in (
        CountPieces, CoolDown, Journal, QuenchAt, PeekEvery, MeanLoss, Shelve, Stir, Sweep,
        EvenGlaze,
    )
}  # fmt: skip
