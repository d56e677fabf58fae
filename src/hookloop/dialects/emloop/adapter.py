"""emloop's hooks at our mount points.

before_training        before_train, or before an evaluation outside training
after_batch            after_train_iter (for each microbatch), after_val_iter, after_test_iter
after_epoch            after_epoch; after_val_epoch in the zeroth epoch and outside training
after_epoch_profile    after_epoch_profile; after_val in the same cases
after_training         after_run, because emloop calls it after a failure too
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, cast

from hookloop.core.hook import Call, Hook
from hookloop.dialects.adapter import Adapter, Catalogued, Method, Mount, base_of
from hookloop.dialects.emloop.cycle import Cycle
from hookloop.dialects.emloop.main_loop import MainLoop
from hookloop.dialects.emloop.models import SavingModel

if TYPE_CHECKING:
    from hookloop.core.run import Run

Bind = Callable[[Method, Adapter], Call]

# emloop sets __module__ of its base class to '.hooks'.
BASES = (("emloop", "AbstractHook"), (".hooks", "AbstractHook"), (__package__, "AbstractHook"))


def adapt(foreign: object) -> list[Hook]:
    """Return the native hooks for one of emloop's."""
    if isinstance(foreign, Catalogued):
        return list(foreign.native_hooks())
    return [EmloopAdapter(foreign)]


class EmloopAdapter(Adapter):
    """One of emloop's hooks."""

    def __init__(self, foreign: object) -> None:
        self.has_begun = False
        base = base_of(foreign, BASES)
        super().__init__(foreign, MOUNTS, facade=MainLoop, base=base)
        self.waits_for_begin = "before_train" in self.__dict__
        # In emloop only a hook ends the training, and an unknown hook may be the one that does.
        # So a Trainer without max_epochs is accepted; our own hooks declare whether they do.
        is_ours = type(foreign).__module__.startswith(__package__)
        self.ends_training = bool(getattr(foreign, "ends_training", not is_ours))

    def before_run(self, run: Run) -> None:
        super().before_run(run)
        cast("MainLoop", self.facade).companion.join(run)
        self.has_begun = False
        # Once per loop: emloop rejects a hook that belongs to a loop already, and one Trainer may
        # train and then evaluate.
        if getattr(self.foreign, "_main_loop", None) is not self.facade:
            register = getattr(self.foreign, "register_mainloop", None)
            if callable(register):
                register(self.facade)
        # emloop's models save themselves, and its hooks call model.save(suffix).
        for name, value in vars(self.foreign).items():
            if value is run.model and not hasattr(value, "save"):
                setattr(self.foreign, name, SavingModel(run, self.name))


# --- how each event is called ---------------------------------------------------------------------


def _cycle(adapter: Adapter) -> Cycle:
    facade = cast("MainLoop", adapter.facade)
    facade.hook = adapter.name
    return facade.cycle


def _before_training(method: Method, adapter: Adapter) -> Call:
    ours = cast("EmloopAdapter", adapter)

    def call(run: Run) -> None:
        # Mounted before training and before evaluations: only the first of them counts.
        if not ours.has_begun:
            _cycle(ours)
            method()
            # After the call: a hook whose before_training failed gets no after_training.
            ours.has_begun = True

    return call


def _after_batch(method: Method, adapter: Adapter) -> Call:
    def call(run: Run) -> None:
        cycle = _cycle(adapter)
        if cycle.is_over:
            return
        began = perf_counter()
        try:
            # Each microbatch is a batch of emloop, whose loop knows no accumulation.
            for data in cycle.batches:
                method(stream_name=cycle.stream, batch_data=data)
        except Exception as error:  # noqa: BLE001 - raised again unless it ends the training
            cycle.end(run, error)
            # emloop leaves the epoch at once: no later hook sees this batch, no after_epoch.
            cycle.is_over = True
        cycle.mark_hooks(perf_counter() - began)

    return call


def _after_epoch(closes_at: str) -> Bind:
    def bind(method: Method, adapter: Adapter) -> Call:
        def call(run: Run, *metrics: object) -> None:
            cycle = _cycle(adapter)
            # A validation within a training ends no epoch of emloop.
            if cycle.is_over or (closes_at and cycle.closes_at != closes_at):
                return
            began = perf_counter()
            try:
                method(epoch_id=run.progress.epoch, epoch_data=cycle.epoch_data)
            except Exception as error:  # noqa: BLE001 - raised again unless it ends the training
                # Here is_over stays False: emloop lets the other hooks finish the epoch.
                cycle.end(run, error)
            cycle.mark_epoch_hooks(perf_counter() - began)

        return call

    return bind


def _after_epoch_profile(closes_at: str) -> Bind:
    def bind(method: Method, adapter: Adapter) -> Call:
        def call(run: Run) -> None:
            cycle = _cycle(adapter)
            if not (cycle.is_over or (closes_at and cycle.closes_at != closes_at)):
                method(
                    epoch_id=run.progress.epoch,
                    profile=cycle.profile,
                    streams=list(cycle.epoch_data),
                )

        return call

    return bind


def _after_training(method: Method, adapter: Adapter) -> Call:
    ours = cast("EmloopAdapter", adapter)

    def call(run: Run) -> None:
        companion = cast("MainLoop", ours.facade).companion
        # A run can fail before anything begins. Then emloop calls no after_training either.
        if ours.has_begun if ours.waits_for_begin else companion.has_begun:
            _cycle(ours)
            # By position, as emloop calls it: hooks name this argument as they like.
            method(run.outcome.status != "failed")

    return call


def _mounts() -> tuple[Mount, ...]:
    epoch = ("epoch_id", "epoch_data")
    profile = ("epoch_id", "profile", "streams")
    batch = ("stream_name", "batch_data")
    found = [
        *(
            Mount(point, "before_training", _before_training, 0)
            for point in ("before_train", "before_val", "before_test")
        ),
        *(
            Mount(point, "after_batch", _after_batch, 0, batch)
            for point in ("after_train_iter", "after_val_iter", "after_test_iter")
        ),
        Mount("after_run", "after_training", _after_training, 1),
    ]
    # An epoch of emloop ends with ours, except where an evaluation is an epoch of its own.
    for phase in ("", "val", "test"):
        point = f"after_{phase}_epoch" if phase else "after_epoch"
        ending = f"after_{phase}" if phase else "after_epoch_profile"
        found.append(Mount(point, "after_epoch", _after_epoch(phase), 0, epoch))
        found.append(Mount(ending, "after_epoch_profile", _after_epoch_profile(phase), 0, profile))
    return tuple(found)


MOUNTS = _mounts()
