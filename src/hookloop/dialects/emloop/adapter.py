"""emloop's hooks at our mount points.

before_training        before_train, or before an evaluation outside of a training
after_batch            after_train_iter (for each microbatch), after_val_iter, after_test_iter
after_epoch            after_epoch; after_val_epoch in the zeroth epoch and outside of a training
after_epoch_profile    after_epoch_profile; after_val in the same cases
after_training         after_run
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

# emloop gives its base class the module '.hooks'.
BASES = (("emloop", "AbstractHook"), (".hooks", "AbstractHook"), (__package__, "AbstractHook"))


def adapt(foreign: object) -> list[Hook]:
    """Make native hooks of one of emloop's."""
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
        # A training of emloop has no limit but its hooks; what a stranger's hook does is not known.
        is_ours = type(foreign).__module__.startswith(__package__)
        self.ends_training = bool(getattr(foreign, "ends_training", not is_ours))

    def before_run(self, run: Run) -> None:
        super().before_run(run)
        cast("MainLoop", self.facade).companion.join(run)
        self.has_begun = False
        if getattr(self.foreign, "_main_loop", None) is not self.facade:
            register = getattr(self.foreign, "register_mainloop", None)
            if callable(register):  # emloop refuses a hook that belongs to another loop.
                register(self.facade)
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
        if not ours.has_begun:
            _cycle(ours)
            method()
            ours.has_begun = True

    return call


def _after_batch(method: Method, adapter: Adapter) -> Call:
    def call(run: Run) -> None:
        cycle = _cycle(adapter)
        if cycle.is_over:
            return
        began = perf_counter()
        try:
            for data in cycle.batches:
                method(stream_name=cycle.stream, batch_data=data)
        except Exception as error:  # noqa: BLE001 - raised again unless it ends the training
            cycle.end(run, error)
            cycle.is_over = True
        cycle.mark_hooks(perf_counter() - began)

    return call


def _after_epoch(closes_at: str) -> Bind:
    def bind(method: Method, adapter: Adapter) -> Call:
        def call(run: Run, *metrics: object) -> None:
            cycle = _cycle(adapter)
            if cycle.is_over or (closes_at and cycle.closes_at != closes_at):
                return
            began = perf_counter()
            try:
                method(epoch_id=run.progress.epoch, epoch_data=cycle.epoch_data)
            except Exception as error:  # noqa: BLE001 - raised again unless it ends the training
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
        if ours.has_begun if ours.waits_for_begin else companion.has_begun:
            _cycle(ours)
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
    for phase in ("", "val", "test"):
        point = f"after_{phase}_epoch" if phase else "after_epoch"
        ending = f"after_{phase}" if phase else "after_epoch_profile"
        found.append(Mount(point, "after_epoch", _after_epoch(phase), 0, epoch))
        found.append(Mount(ending, "after_epoch_profile", _after_epoch_profile(phase), 0, profile))
    return tuple(found)


MOUNTS = _mounts()
