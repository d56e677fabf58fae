"""`Kiln`: the run as glazes see it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from hookloop import Save
from hookloop.dialects import Companion, Facade, size_of

if TYPE_CHECKING:
    import torch

    from hookloop import Run


class Kiln(Facade):
    """The kiln; its firings begin at 1, the turns of each at 0."""

    role = "kiln"
    hints: ClassVar[Mapping[str, str]] = {"wood": "the Trainer's train_data"}
    loggers = ("kiln",)

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.marks = Marks(run)
        self.ledger = Ledger()

    @property
    def firing(self) -> int:
        """The number of the epoch, which begins at 1."""
        return self.run.progress.epoch + (self.run.progress.stage == "inside")

    @property
    def turn(self) -> int:
        """The index of the iteration in its epoch; it moves after the hooks of an iteration."""
        return self.ledger.turn

    @property
    def pieces(self) -> int:
        """Samples so far."""
        return self.ledger.pieces

    @property
    def clay(self) -> torch.nn.Module:
        """The model."""
        return self.run.model

    @property
    def heat(self) -> float:
        """The learning rate; glazes may set it."""
        return float(self.run.optimizer.param_groups[0]["lr"])

    @heat.setter
    def heat(self, heat: float) -> None:
        for group in self.run.optimizer.param_groups:
            group["lr"] = heat

    @property
    def shed(self) -> Path:
        """The run's directory."""
        return self.run.dir

    def quench(self, why: str) -> None:
        """End the training after this turn."""
        self.run.stop(f"{self.hook}: {why}")

    def peek(self) -> None:
        """Validate after this turn."""
        self.run.validate()

    def shelve(self, name: str) -> None:
        """Save after this turn."""
        self.run.save(Save(f"{name}.pth", owner=self.hook))


class Marks(Mapping[str, float]):
    """Numbers by name: those of the run, and those that glazes make with `mark`."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def mark(self, name: str, value: float) -> None:
        """Add a number, for other glazes and for the writers."""
        self._run.metrics.put(f"kiln/{name}", value)

    def __getitem__(self, name: str) -> float:
        metrics = self._run.metrics
        own = f"kiln/{name}"
        return float(metrics.latest(own if own in metrics.names() else name))

    def __iter__(self) -> Iterator[str]:
        return iter(name.removeprefix("kiln/") for name in self._run.metrics.names())

    def __len__(self) -> int:
        return len(self._run.metrics.names())


class Ledger(Companion):
    """The counters that only kiln has; it acts before the glazes, and checkpoints hold it."""

    name = "dialect:kiln"

    def __init__(self) -> None:
        self.turn = 0
        self.pieces = 0

    def before_train_epoch(self, run: Run) -> None:
        # Not 0 if a resumed run continues in the middle of an epoch.
        self.turn = run.progress.iter_in_epoch

    def before_train_iter(self, run: Run) -> None:
        self.turn = run.progress.iter_in_epoch

    def after_train_iter(self, run: Run) -> None:
        self.pieces += size_of(run.batch)
        if self.turn % 2:
            run.fire("on_reglaze")

    def state_dict(self) -> dict[str, object]:
        return {"pieces": self.pieces}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        self.pieces = int(str(state["pieces"]))
