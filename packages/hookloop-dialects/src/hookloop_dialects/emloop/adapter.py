"""emloop's hooks at our mount points.

before_training        before_train, or before an evaluation outside training
after_batch            after_train_iter (for each microbatch), after_val_iter, after_test_iter
after_epoch            after_val_epoch of the validation after an epoch, else after_epoch
after_epoch_profile    after_val of that validation, else after_epoch_profile
after_training         after_run, because emloop calls it after a failure too
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, cast

from hookloop import Hook
from hookloop.dialects import (
    Adapter,
    Call,
    Catalogued,
    Method,
    Mount,
    base_of,
    plan_of,
)
from hookloop_dialects.emloop.companion import EmloopCompanion, check_order, evaluated_names
from hookloop_dialects.emloop.cycle import TRAIN, Cycle
from hookloop_dialects.emloop.epoch_data import NotEvaluatedError
from hookloop_dialects.emloop.main_loop import MainLoop
from hookloop_dialects.emloop.models import SavingModel
from hookloop_dialects.emloop.streams import check_streams

if TYPE_CHECKING:
    from hookloop import Run

Bind = Callable[[Method, Adapter], Call]

# emloop sets __module__ of its base class to '.hooks'.
BASES = tuple((home, "AbstractHook") for home in ("emloop", ".hooks", "cxflow", __package__))

# What after_epoch_profile gets. Older versions passed the second and third form.
PROFILE_FORMS = (
    ("epoch_id", "profile", "streams"),
    ("epoch_id", "profile", "train_stream_name", "extra_streams"),
    ("epoch_id", "profile", "extra_streams"),
)


def adapt(foreign: object) -> list[Hook]:
    """Return the native hooks for one of emloop's."""
    if isinstance(foreign, Catalogued):
        return list(foreign.native_hooks())
    return [EmloopAdapter(foreign)]


class EmloopAdapter(Adapter):
    """One of emloop's hooks."""

    def __init__(self, foreign: object) -> None:
        self.has_begun = False
        self.is_ours = type(foreign).__module__.startswith(__package__)
        base = base_of(foreign, BASES)
        super().__init__(foreign, _mounts(_profile_form(foreign)), facade=MainLoop, base=base)
        # What it adds to the epoch's data is put into the metric store, where native hooks read it.
        written = getattr(foreign, "writes_epoch_data", ())
        self.writes = (
            *self.writes,
            *(f"*/{name}{rest}" for name in written for rest in ("", "/*")),
        )
        self.waits_for_begin = "before_train" in self.__dict__
        # In emloop only a hook ends the training, and an unknown hook may be the one that does.
        # So a Trainer without max_epochs is accepted; our own hooks declare whether they do.
        self.ends_training = bool(getattr(foreign, "ends_training", not self.is_ours))

    @property
    def companion(self) -> EmloopCompanion:
        """What the hooks of this dialect share."""
        return cast("MainLoop", self.facade).companion

    def check_in(self, run: Run) -> None:
        check_order(run.hooks, evaluated_names(plan_of(run).produced))
        if run.train_data is not None:
            check_streams(run)

    def before_run(self, run: Run) -> None:
        super().before_run(run)
        self.companion.join(run)
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
        ours = cast("EmloopAdapter", adapter)

        def call(run: Run, *metrics: object) -> None:
            cycle = _cycle(adapter)
            # An epoch of emloop ends once: not with a validation in the middle of it.
            if cycle.is_over or cycle.closes_at != closes_at:
                return
            data, prefixes, exchange = cycle.epoch_data, cycle.prefixes, cycle.exchange
            # Before each hook, because native hooks act between those of emloop.
            exchange.take_in(run.metrics, data, prefixes)
            began = perf_counter()
            try:
                method(epoch_id=run.progress.epoch, epoch_data=data)
            except NotEvaluatedError:
                # Our own hooks have nothing to do without their stream. Outside training that is
                # true of any hook: emloop evaluates without the hooks of the training.
                if ours.is_ours or not ours.companion.is_training:
                    return
                raise
            except Exception as error:  # noqa: BLE001 - raised again unless it ends the training
                # Here is_over stays False: emloop lets the other hooks finish the epoch.
                cycle.end(run, error)
            cycle.mark_epoch_hooks(perf_counter() - began)
            exchange.hand_over(run.metrics, data, prefixes, adapter.name)

        return call

    return bind


def _profile_form(foreign: object) -> tuple[str, ...]:
    """Return the arguments that a hook's after_epoch_profile takes."""
    method = getattr(foreign, "after_epoch_profile", None)
    names = set(inspect.signature(method).parameters) if callable(method) else set()
    # One that takes anything gets the newest form.
    return next((form for form in PROFILE_FORMS if set(form) <= names), PROFILE_FORMS[0])


def _after_epoch_profile(closes_at: str, form: tuple[str, ...]) -> Bind:
    def bind(method: Method, adapter: Adapter) -> Call:
        def call(run: Run) -> None:
            cycle = _cycle(adapter)
            if cycle.is_over or cycle.closes_at != closes_at:
                return
            streams = list(cycle.epoch_data)
            given = {
                "epoch_id": run.progress.epoch,
                "profile": cycle.profile,
                "streams": streams,
                "train_stream_name": TRAIN,
                "extra_streams": [stream for stream in streams if stream != TRAIN],
            }
            method(**{name: given[name] for name in form})

        return call

    return bind


def _after_training(method: Method, adapter: Adapter) -> Call:
    ours = cast("EmloopAdapter", adapter)

    def call(run: Run) -> None:
        # A run can fail before anything begins. Then emloop calls no after_training either.
        if ours.has_begun if ours.waits_for_begin else ours.companion.has_begun:
            _cycle(ours)
            # By position, as emloop calls it: hooks name this argument as they like.
            method(run.outcome.status != "failed")

    return call


def _mounts(profile: tuple[str, ...]) -> tuple[Mount, ...]:
    epoch = ("epoch_id", "epoch_data")
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
    # An epoch of emloop ends with its last stream: with the validation after an epoch, if there is
    # one, so that native hooks find the results there, too.
    for phase in ("epoch", "val", "test"):
        point = "after_epoch" if phase == "epoch" else f"after_{phase}_epoch"
        ending = "after_epoch_profile" if phase == "epoch" else f"after_{phase}"
        found.append(Mount(point, "after_epoch", _after_epoch(phase), 0, epoch))
        call = _after_epoch_profile(phase, profile)
        found.append(Mount(ending, "after_epoch_profile", call, 0, profile))
    return tuple(found)
