"""iMIX's hooks at our mount points. Methods have no arguments; the engine is ``self.trainer``.

before_train, before_train_epoch, before_train_iter, after_train_epoch    the same
after_train_iter     after_train_iter; after_loss for levels above HIGH, because iMIX's optimizer
                     hook makes backward and update at level HIGH; after_backward for such a hook
after_train          after_run, because iMIX calls it after a failure too
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

import torch

from hookloop import Hook, Priority
from hookloop.dialects import Adapter, Call, Catalogued, Method, Mount, base_of
from hookloop.errors import HookError
from hookloop_dialects.dialects import IMIX
from hookloop_dialects.imix.engine.hooks.base_hook import read_level
from hookloop_dialects.imix.engine.hooks.optimizer import OptimizerHook
from hookloop_dialects.imix.held import makes_update, restore_parts, save_parts, stateful_parts
from hookloop_dialects.imix.trainer import EngineFacade
from hookloop_dialects.imix.update import left_to

if TYPE_CHECKING:
    from hookloop import Run, Update

Bind = Callable[[Method, Adapter], Call]

_log = logging.getLogger("imix")

# By name: the number 30 is NORMAL in iMIX and HIGH here.
PRIORITIES = {
    "HIGHEST": Priority.HIGHEST,
    "HIGHER": Priority.VERY_HIGH,
    "HIGH": Priority.HIGH,
    "NORMAL": Priority.NORMAL,
    "LOW": Priority.LOW,
    "LOWER": Priority.VERY_LOW,
    "LOWEST": Priority.LOWEST,
}
BEFORE_UPDATE = ("HIGHEST", "HIGHER")


def adapt(foreign: object) -> list[Hook]:
    """Return the native hooks for one of iMIX's."""
    # A subclass of the optimizer hooks makes the update in its own way, which native hooks do not.
    is_own = isinstance(foreign, OptimizerHook) and not foreign.is_plain
    if isinstance(foreign, Catalogued) and not is_own:
        natives = list(foreign.native_hooks())
        # A config may set the level of a catalogued hook like that of any other.
        for hook in natives:
            hook.priority = priority_of(foreign)
        return natives
    return [ImixAdapter(foreign)]


def level_of(foreign: object) -> str:
    """Return the name of a hook's level."""
    level = getattr(foreign, "level", "NORMAL")
    # An installed iMIX has an enum of its own, so the class of the level does not matter.
    name = getattr(level, "name", None)
    return name if name in PRIORITIES else read_level(level).name


def priority_of(foreign: object) -> Priority:
    """Translate a hook's level, by its name."""
    return PRIORITIES[level_of(foreign)]


class ImixAdapter(Adapter):
    """One of iMIX's hooks."""

    facade: EngineFacade

    def __init__(self, foreign: object) -> None:
        self.has_begun = False
        self._loaded: Mapping[str, object] = {}
        self._has_precision = False
        self.makes_update = makes_update(foreign)
        at_iter = AT_UPDATE if self.makes_update else AFTER_UPDATE
        if not self.makes_update and level_of(foreign) in BEFORE_UPDATE:
            at_iter = BEFORE_BACKWARD
        base = base_of(foreign, IMIX.bases)
        super().__init__(
            foreign,
            [*MOUNTS, at_iter],
            facade=EngineFacade,
            base=base,
            priority=priority_of(foreign),
        )
        if self.makes_update:
            self.takes_part_in_training = True
            self.attach("after_forward", self._note_precision)

    def change_update(self, run: Run, update: Update) -> Update:
        return left_to(self, run, update) if self.makes_update else update

    def before_run(self, run: Run) -> None:
        super().before_run(run)
        self.has_begun = False
        self.facade.companion.join(run)
        # iMIX's stages have no arguments: this attribute is all that a hook knows of the run.
        self.foreign.trainer = self.facade  # type: ignore[attr-defined]
        own = [schedule.scheduler for schedule in run.schedules.values()]
        for name, part in stateful_parts(self.foreign).items():
            if any(part is scheduler for scheduler in own):
                raise HookError(
                    f"The hook '{self.name}' steps the scheduler in its attribute '{name}', and "
                    "the Trainer steps this scheduler already. Pass it to one of the two."
                )
        if self.makes_update:
            self.facade.leave_update_to(self.name)
            self._warn_of_order(run)

    def _warn_of_order(self, run: Run) -> None:
        """Name the hooks that act before the update in iMIX, and here after it."""
        first, last = PRIORITIES["HIGH"], priority_of(self.foreign)
        later = [
            hook.name
            for hook in run.hooks
            if isinstance(hook, ImixAdapter) and first <= priority_of(hook.foreign) < last
        ]
        if later:
            _log.warning(
                "'%s' has the level %s and makes the update before %s here. Give it the level HIGH "
                "to remove this warning.",
                self.name,
                level_of(self.foreign),
                ", ".join(later),
            )

    def _note_precision(self, run: Run) -> None:
        """Warn of a scaler without half precision, and of half precision without a scaler."""
        if self._has_precision or run.phase != "train":
            return
        self._has_precision = True
        # Autocast is active only around a forward pass, so this cannot be found out earlier.
        is_mixed = torch.is_autocast_enabled(run.device.type)
        is_half = is_mixed and torch.get_autocast_dtype(run.device.type) == torch.float16
        self.facade.imixed_precision = is_mixed
        scales = self.scales_loss
        if scales and not is_half:
            _log.warning(
                "'%s' scales the loss, and the run has another precision than Trainer("
                "precision='fp16').", self.name
            )  # fmt: skip
        if is_half and not scales:
            _log.warning(
                "'%s' makes the update of a run in half precision and does not scale the loss: "
                "small gradients are lost.", self.name
            )  # fmt: skip

    @property
    def scales_loss(self) -> bool:
        """Whether the hook holds a scaler that is enabled."""
        parts = stateful_parts(self.foreign).values()
        return any(isinstance(part, torch.amp.GradScaler) and part.is_enabled() for part in parts)

    def state_dict(self) -> dict[str, object]:
        # iMIX's checkpoints hold the scheduler, though its hooks have no state.
        if callable(getattr(self.foreign, "state_dict", None)):
            return super().state_dict()
        return save_parts(self.foreign)

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        if callable(getattr(self.foreign, "load_state_dict", None)):
            super().load_state_dict(state)
            return
        self._loaded = state
        restore_parts(self.foreign, state)

    def restore_made(self) -> None:
        """Restore scalers and schedulers that the hook has made only before the training."""
        restore_parts(self.foreign, self._loaded)
        self._loaded = {}


# --- how each stage is called ---------------------------------------------------------------------


def _plain(method: Method, adapter: Adapter) -> Call:
    def call(run: Run) -> None:
        adapter.facade.hook = adapter.name
        method()

    return call


def _at_start(method: Method, adapter: Adapter) -> Call:
    ours = cast("ImixAdapter", adapter)

    def call(run: Run) -> None:
        ours.facade.hook = ours.name
        method()
        ours.restore_made()

    return call


def _in_training(method: Method, adapter: Adapter) -> Call:
    def call(run: Run) -> None:
        # after_loss fires in validations too, and iMIX has no such stage.
        if run.phase == "train":
            adapter.facade.hook = adapter.name
            method()

    return call


def _by_epoch(method: Method, adapter: Adapter) -> Call:
    ours = cast("ImixAdapter", adapter)

    def call(run: Run) -> None:
        # iMIX's loop by iteration has no stages of epochs.
        if ours.facade.by_epoch:
            ours.facade.hook = ours.name
            method()

    return call


def _at_end(method: Method, adapter: Adapter) -> Call:
    ours = cast("ImixAdapter", adapter)

    def call(run: Run) -> None:
        # after_run also ends runs that only validate or test.
        if ours.facade.companion.is_training:
            ours.facade.hook = ours.name
            method()

    return call


MOUNTS = (
    Mount("before_train", "before_train", _at_start, 0),
    Mount("before_train_epoch", "before_train_epoch", _by_epoch, 0),
    Mount("before_train_iter", "before_train_iter", _plain, 0),
    Mount("after_train_epoch", "after_train_epoch", _by_epoch, 0),
    Mount("after_run", "after_train", _at_end, 0),
)
AFTER_UPDATE = Mount("after_train_iter", "after_train_iter", _plain, 0)
BEFORE_BACKWARD = Mount("after_loss", "after_train_iter", _in_training, 0)
AT_UPDATE = Mount("after_backward", "after_train_iter", _plain, 0)
