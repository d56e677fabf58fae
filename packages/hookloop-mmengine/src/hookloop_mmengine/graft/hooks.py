"""MMEngine's real hooks in a run, and the hooks that keep its runner and loop up to date.

The plan calls the hooks at the points of the training. Those of evaluations, and ``before_run`` and
``after_run``, are called by MMEngine's own loops and runner.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from hookloop import Hook, Priority, Save
from hookloop.dialects import (
    Adapter,
    Call,
    ChangedAttributes,
    Facade,
    Method,
    Mount,
    base_of,
    overridden,
)
from hookloop.runs import checkpoint_name
from hookloop_mmengine.adapter import priority_of
from hookloop_mmengine.dialect import MMENGINE

if TYPE_CHECKING:
    from hookloop import Run
    from hookloop_mmengine.graft.training import Training


_DERIVED = ("key_indicators", "rules")
"""What CheckpointHook sets together with functions, which no file holds; it does so again."""


class GraftedHook(Adapter):
    """A hook of the real MMEngine at our points of the training; it gets the real runner.

    Args:
        foreign: The hook.
        training: The training, with the runner.
    """

    def __init__(self, foreign: object, training: Training) -> None:
        self.training = training
        base = base_of(foreign, MMENGINE.bases)
        mounts = [
            mount
            for mount, generic in MOUNTS[training.is_iter_based]
            # A method of the base class does nothing but call the generic one.
            if any(overridden(foreign, name, base) for name in (mount.method, generic) if name)
        ]
        super().__init__(foreign, mounts, facade=Facade, priority=priority_of(foreign))
        # As in MMEngine: what a hook draws is part of the training.
        self.takes_part_in_training = True
        self.attributes = ChangedAttributes(foreign, lambda name, _: name not in _DERIVED)

    def bind_facade(self, run: Run) -> None:
        """Do nothing: the hook gets the real runner."""

    def state_dict(self) -> dict[str, object]:
        """Return what changed in the training, and what the hook itself says is its state."""
        parts = {"attributes": self.attributes.state_dict(), "own": super().state_dict()}
        return {name: part for name, part in parts.items() if part}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        self.attributes.load_state_dict(cast("Mapping[str, object]", state.get("attributes", {})))
        super().load_state_dict(cast("Mapping[str, object]", state.get("own", {})))


# --- how each method is called ------------------------------------------------------------------


def _simple(method: Method, adapter: Adapter) -> Call:
    runner = cast("GraftedHook", adapter).training.runner

    def call(run: Run) -> None:
        method(runner)

    return call


def _before_iter(method: Method, adapter: Adapter) -> Call:
    training = cast("GraftedHook", adapter).training
    runner = training.runner

    def call(run: Run) -> None:
        method(runner, batch_idx=training.index(run), data_batch=run.batch)

    return call


def _after_iter(method: Method, adapter: Adapter) -> Call:
    training = cast("GraftedHook", adapter).training
    runner = training.runner

    def call(run: Run) -> None:
        index = training.index(run) - 1
        method(runner, batch_idx=index, data_batch=run.batch, outputs=run.output)

    return call


_BATCH = ("batch_idx", "data_batch")
_OUTPUTS = (*_BATCH, "outputs")
_BY_EPOCH = (
    (Mount("before_train", "before_train", _simple), ""),
    (Mount("before_train_epoch", "before_train_epoch", _simple), "_before_epoch"),
    (Mount("before_train_iter", "before_train_iter", _before_iter, 1, _BATCH), "_before_iter"),
    (Mount("after_train_iter", "after_train_iter", _after_iter, 1, _OUTPUTS), "_after_iter"),
    (Mount("after_train_epoch", "after_train_epoch", _simple), "_after_epoch"),
    (Mount("after_train", "after_train", _simple), ""),
)
MOUNTS = {
    False: _BY_EPOCH,
    # The end of its only epoch is the end of the training, also after a stop.
    True: tuple(entry for entry in _BY_EPOCH if entry[0].point != "after_train_epoch"),
}


# --- what keeps MMEngine's runner and loop up to date -------------------------------------------


class BeginEpoch(Hook):
    """Do what MMEngine's loop does before its hooks are called."""

    name = "mmengine_begin"
    priority = Priority.HIGHEST
    takes_part_in_training = True

    def __init__(self, training: Training) -> None:
        self._training = training

    def before_train_epoch(self, run: Run) -> None:
        self._training.runner.model.train()  # On several processes also the wrapper itself.

    def before_train_iter(self, run: Run) -> None:
        self._training.iteration_begins()

    def after_train(self, run: Run) -> None:
        if self._training.is_iter_based:
            self._training.runner.call_hook("after_train_epoch")
        self._training.wait_for_files()  # Hooks publish them, or load the best one.


class KeepCounters(Hook):
    """Move MMEngine's counters after each sweep of its hooks, and obey what these have set."""

    name = "mmengine_counters"
    priority = Priority.LOWEST
    takes_part_in_training = True

    def __init__(self, training: Training) -> None:
        self._training = training

    def before_train(self, run: Run) -> None:
        for hook in run.hooks:
            if isinstance(hook, GraftedHook):
                hook.attributes.settle()
        self._training.delay_removals()

    def before_train_epoch(self, run: Run) -> None:
        self._training.follow_data()

    def after_train_iter(self, run: Run) -> None:
        self._training.iteration_ended(run)

    def after_train_epoch(self, run: Run) -> None:
        self._training.epoch_ended(run)

    def after_epoch(self, run: Run) -> None:
        self._training.obey_stop()


class SaveWhenInterrupted(Hook):
    """Save when a signal ends the run, also off the interval: MMEngine would lose the work."""

    name = "mmengine_interrupted"
    priority = Priority.LOWEST
    takes_part_in_training = True

    def after_train(self, run: Run) -> None:
        if run.is_interrupted:
            run.save(
                Save(checkpoint_name("iter", run.progress.iter), kind="other"), everywhere=True
            )
