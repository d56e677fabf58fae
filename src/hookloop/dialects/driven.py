"""A `Trainer` that the runner of another system drives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hookloop.checkpoint.saving.checkpoints import LastPointer
from hookloop.engine.evaluation import Evaluation
from hookloop.engine.run import Run
from hookloop.every import Every
from hookloop.metrics.results import LiveResults, Results
from hookloop.parallel.world import World, assume
from hookloop.requests import Wanted
from hookloop.trainer.several_ranks import join_divided
from hookloop.trainer.trainer import Trainer

Validate = Callable[[], Mapping[str, float] | None]


class Driven:
    """A `Trainer`, and what a runner that has loops of its own sets besides its arguments.

    Args:
        world: The ranks, where each has data of its own and the update averages its gradients
            itself; None where the engine divides the data.
        settings: The arguments of the Trainer.

    Attributes:
        trainer: The Trainer.
    """

    def __init__(self, *, world: World | None = None, **settings: Any) -> None:  # noqa: ANN401 - the Trainer's
        if world is None:
            self.trainer = Trainer(**settings)
            return
        with assume(World()):  # Built as a single process, because its data is divided already.
            self.trainer = Trainer(**settings)
        join_divided(self.trainer._loop, world)

    def use_directory(self) -> None:
        """Train in the run's directory also if it holds a run, whose files are overwritten."""
        self.trainer._session.start.adopt()

    def validate_with(self, validate: Validate) -> None:
        """Let a function validate: it returns numbers by name, or None if it was cut short."""
        self.trainer._loop.evaluation = _ByFunction(self.trainer.run, validate)

    def point_with_whole_paths(self) -> None:
        """Let ``last_checkpoint`` hold a whole path, as tools of other systems expect."""
        self.trainer._loop.checkpoints.pointer = LastPointer(has_whole_paths=True)

    def wait_for_saves(self) -> None:
        """Wait until everything that is to be saved is durable, and tell the hooks."""
        self.trainer._loop.close_checkpoints()

    @property
    def val_every(self) -> Every:
        """The interval of validations; it may change during the training."""
        return self.trainer._loop.validation.every

    @val_every.setter
    def val_every(self, every: Every) -> None:
        self.trainer._loop.validation.every = every

    @property
    def val_begin(self) -> int:
        """The first epoch or iteration after which there is a validation."""
        return self.trainer._loop.validation.begin

    @val_begin.setter
    def val_begin(self, begin: int) -> None:
        self.trainer._loop.validation.begin = begin


class _ByFunction(Evaluation):
    """Validations that a function makes.

    Args:
        run: The run.
        function: It makes one.
    """

    def __init__(self, run: Run, function: Validate) -> None:
        super().__init__(run, [], {})
        self._function = function

    def validate(self, wanted: Wanted = True) -> Results:
        """Make one, and put its numbers into the metric store."""
        run = self.run
        run.phase = run.stream = "val"
        try:
            numbers = self._function()
        finally:
            run.phase = run.stream = "train"
        if numbers is None:
            return Results("val", {})
        self._publish("val", {f"val/{name}": value for name, value in numbers.items()})
        return LiveResults(run.metrics, "val").read()
