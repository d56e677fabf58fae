"""Loading into a run: the weights it starts from, the checkpoint it continues or goes back to."""

from __future__ import annotations

from collections.abc import Sequence

from hookloop.engine.loop import Loop
from hookloop.engine.plan import fire
from hookloop.runs.identity import Identity
from hookloop.trainer.several_ranks import find_checkpoint, join_orders
from hookloop.trainer.start import Start
from hookloop.trainer.state.run_state import RunState


class Loading:
    """Loads what a run begins with, and restores its checkpoints.

    Args:
        loop: The loop of the run.
        start: Where the run begins.
        state: What the run consists of.
    """

    def __init__(self, loop: Loop, start: Start, state: RunState) -> None:
        self._loop = loop
        self._run = loop.run
        self._start = start
        self._state = state

    def load(self, *, trains: bool) -> None:
        """Load the weights to start from, or the run to continue, if there are any."""
        run, start = self._run, self._start
        if start.weights is not None:
            start.weights.load_into(run.model)
            # Once: a second train() continues with the trained weights.
            start.weights = None
        stores = run.stores
        found = find_checkpoint(run, start, stores)
        is_main = run.world.is_main
        identity = start.identify(found, stores, trains=trains) if is_main else Identity()
        identity, is_from_other = run.ranks.share((identity, start.is_from_other))
        run.id, run.parent, run.is_from_other = identity.run_id, identity.parent, is_from_other
        if found is not None:
            self.restore(*found, start.change, trains=trains)
            start.loaded = found[0]
            if not trains:  # What the checkpoint had not written yet is the training's to write.
                run.metrics.mark_all_read()

    def restore(
        self,
        label: str,
        checkpoint: dict[str, object],
        change: Sequence[str] | None = None,
        *,
        trains: bool = True,
    ) -> None:
        """Restore a checkpoint.

        Args:
            label: Where it is from.
            checkpoint: Its entries.
            change: What differs on purpose; None if it is of this very run, and nothing differs.
            trains: Whether a training continues from it.
        """
        run = self._run
        # Before anything is restored, so that hooks can still change the entries.
        fire(run.plan.after_load_checkpoint, run, checkpoint)
        # The loop sets the generators itself when it starts. What is drawn until then does not
        # count.
        self._loop.randomness.paused_at = self._state.restore(
            checkpoint, label, change, trains=trains
        )
        join_orders(run)
        if trains:
            self._loop.checkpoints.continue_from(label, run.stores)
