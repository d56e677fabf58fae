"""Hooks of ClassyVision and VISSL at our mount points. The only argument is the task.

on_start             before_train, or before an evaluation outside training
on_phase_start       before_train_epoch, before_val_epoch, before_test_epoch
on_forward           after_forward
on_loss_and_meter    after_loss
on_backward          before_update: the gradients are complete and unscaled
on_update            after_update
on_step              after_train_iter, after_val_iter, after_test_iter
on_phase_end         after_train_epoch, after_val_epoch, after_test_epoch
on_end               after_train, or after an evaluation outside training
on_exception         on_exception
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, cast

from hookloop import Hook, Priority
from hookloop.dialects import (
    Adapter,
    Call,
    Catalogued,
    Method,
    Mount,
    internals_of,
)
from hookloop_dialects.vissl.classy_vision.generic.modes import eval_model
from hookloop_dialects.vissl.task import Task

if TYPE_CHECKING:
    from pathlib import Path

    from hookloop import Run

# ClassyVision moves its CheckpointHook to the end of the list, behind all its other hooks.
LAST = int(Priority.NORMAL) + 1

OF_VISSL = ("on_forward", "on_loss_and_meter", "on_backward", "on_update")
"""Events that ClassyVision's hooks do not have."""


def adapt(foreign: object) -> list[Hook]:
    """Return the native hooks for one of ClassyVision's or VISSL's."""
    adapter = ClassyAdapter(foreign)
    if isinstance(foreign, Catalogued):
        # A class of a project's own may have derived from it and added events.
        return [*foreign.native_hooks(), *([adapter] if adapter.acts else [])]
    return [adapter]


class ClassyAdapter(Adapter):
    """One hook of ClassyVision or VISSL; its ``state`` is kept in checkpoints and restored."""

    facade: Task

    def __init__(self, foreign: object) -> None:
        self.has_begun = False
        # A base class is not passed: five of its methods are abstract, and it lacks the others.
        used = [mount for mount in MOUNTS if not _is_noop(foreign, mount.method)]
        # By name, since an installed ClassyVision has a class of its own.
        is_last = type(foreign).__name__ == "CheckpointHook"
        priority = LAST if is_last else Priority.NORMAL
        super().__init__(foreign, used, facade=Task, priority=priority)

    def before_run(self, run: Run) -> None:
        super().before_run(run)
        self.facade.companion.join(run)
        # VISSL's hooks mention its events, also those that they leave out. What has none of them
        # is written for ClassyVision, where the losses are not multiplied by the samples.
        if any(hasattr(self.foreign, event) for event in OF_VISSL):
            # A step of the user's own decides itself what the loss and the metrics get.
            self.facade.companion.unwraps = internals_of(run).loss_function is not None
        else:
            self.facade.companion.plain_losses.add(self.name)
        self.has_begun = False

    def stores(self, run_dir: Path) -> Sequence[str]:
        # ClassyVision's CheckpointHook writes there. A resume looks only where hooks declare it.
        folder = vars(self.foreign).get("checkpoint_folder")
        return (folder,) if isinstance(folder, str) else ()

    # The base class looks for state_dict; these hooks have methods of other names.
    def state_dict(self) -> dict[str, object]:
        get = getattr(self.foreign, "get_classy_state", None)
        return dict(get()) if callable(get) else {}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        put = getattr(self.foreign, "set_classy_state", None)
        if callable(put) and state:
            put(dict(state))


def _is_noop(foreign: object, name: str) -> bool:
    """Return whether a hook has ``on_step = ClassyHook._noop``."""
    method = getattr(foreign, name, None)
    # By name, so that it works for an installed ClassyVision as well.
    return getattr(method, "__name__", "") == "_noop"


# --- how each method is called --------------------------------------------------------------------


def _with_task(method: Method, adapter: Adapter) -> Call:
    def call(run: Run, *arguments: object) -> None:
        task = adapter.facade
        task.hook = adapter.name
        method(task)

    return call


def _plain(method: Method, adapter: Adapter) -> Call:
    """Return the call for a point without arguments."""
    # Apart from `_with_task`, because *arguments would cost a tuple in every iteration.

    def call(run: Run) -> None:
        task = adapter.facade
        task.hook = adapter.name
        method(task)

    return call


def _once(method: Method, adapter: Adapter) -> Call:
    ours = cast("ClassyAdapter", adapter)

    def call(run: Run) -> None:
        # Mounted before training and before evaluations: only the first of them counts.
        if not ours.has_begun:
            ours.has_begun = True
            ours.facade.hook = ours.name
            method(ours.facade)

    return call


def _outside_training(method: Method, adapter: Adapter) -> Call:
    ours = cast("ClassyAdapter", adapter)

    def call(run: Run) -> None:
        # A validation during training is a phase, not the end.
        if ours.facade.test_only:
            ours.facade.hook = ours.name
            method(ours.facade)

    return call


def _at_end(method: Method, adapter: Adapter) -> Call:
    ours = cast("ClassyAdapter", adapter)

    def call(run: Run) -> None:
        task = ours.facade
        task.hook = ours.name
        task.ended_in = task.companion.ended_in
        # These systems leave the model in the mode of the last phase. A hook that exports it would
        # otherwise export the training, and change its statistics.
        mode = nullcontext() if task.train else eval_model(run.model)
        try:
            with mode:
                method(task)
        finally:
            task.ended_in = ""

    return call


MOUNTS = (
    *(Mount(point, "on_start", _once) for point in ("before_train", "before_val", "before_test")),
    *(
        Mount(f"before_{phase}_epoch", "on_phase_start", _plain)
        for phase in ("train", "val", "test")
    ),
    Mount("after_forward", "on_forward", _plain),
    Mount("after_loss", "on_loss_and_meter", _plain),
    Mount("before_update", "on_backward", _plain),
    Mount("after_update", "on_update", _plain),
    *(Mount(f"after_{phase}_iter", "on_step", _plain) for phase in ("train", "val", "test")),
    *(
        Mount(f"after_{phase}_epoch", "on_phase_end", _with_task)
        for phase in ("train", "val", "test")
    ),
    Mount("after_train", "on_end", _at_end),
    Mount("after_val", "on_end", _outside_training),
    Mount("after_test", "on_end", _outside_training),
    Mount("on_exception", "on_exception", _with_task),
)
