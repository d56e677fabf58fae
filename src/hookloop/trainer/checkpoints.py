"""What the checkpoints of a run are made of: its state, which hooks may add to, and its metrics."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hookloop.engine.plan import fire
from hookloop.engine.run import Run
from hookloop.parallel.ranks import Ranks
from hookloop.trainer.state.parts import current_metrics
from hookloop.trainer.state.run_state import RunState, State


class RunAsOrigin:
    """A run, as `Checkpoints` sees it.

    Args:
        run: The run.
        state: Its state.
        restore_home: Creates the run's directory again if it was deleted; returns whether it was.
    """

    def __init__(
        self, run: Run, state: RunState, restore_home: Callable[[], bool] = lambda: False
    ) -> None:
        self._run = run
        self._state = state
        self.restore_home = restore_home

    @property
    def ranks(self) -> Ranks:
        """The connection to the other ranks."""
        return self._run.ranks

    @property
    def is_sharded(self) -> bool:
        """Whether each rank writes its part of the model."""
        return self._run.shards is not None

    @property
    def home(self) -> Path:
        """The run's directory, as it is now."""
        return Path(self._run.dir)

    @property
    def iter(self) -> int:
        """Iterations completed now."""
        return self._run.progress.iter

    @property
    def epoch(self) -> int:
        """Epochs completed now."""
        return self._run.progress.epoch

    def gather(self) -> State:
        """Collect the state, and show it to hooks; all ranks take part."""
        checkpoint = self._state.gather()
        # Before the copy, so that what hooks add is copied as well.
        fire(self._run.plan.before_save_checkpoint, self._run, checkpoint)
        return checkpoint

    def metrics(self) -> dict[str, float]:
        """Return the metrics of this iteration."""
        return current_metrics(self._run)

    def announce(self) -> None:
        """Let the loop ask for news; called in the thread that writes."""
        # A flag, so that hooks are called by the loop, in the thread that trains. On many ranks it
        # asks at their next meeting. Each call of the Trainer makes new requests.
        if self._run.world.is_alone:
            self._run.requests.any = True
