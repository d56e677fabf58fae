"""iMIX's hooks at our mount points. Methods have no arguments; the engine is ``self.trainer``.

before_train, before_train_epoch, before_train_iter, after_train_epoch    the same
after_train_iter     after_train_iter; after_loss for levels above HIGH, because iMIX's optimizer
                     hook makes backward and update at level HIGH
after_train          after_run, because iMIX calls it after a failure too
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from hookloop.core.hook import Call, Hook, Priority
from hookloop.dialects.adapter import Adapter, Catalogued, Method, Mount, base_of
from hookloop.dialects.built_in import IMIX
from hookloop.dialects.imix.engine.hooks.base_hook import read_level
from hookloop.dialects.imix.trainer import EngineFacade

if TYPE_CHECKING:
    from hookloop.core.run import Run

Bind = Callable[[Method, Adapter], Call]

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
    if isinstance(foreign, Catalogued):
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
        is_early = level_of(foreign) in BEFORE_UPDATE
        mounts = [*MOUNTS, BEFORE_BACKWARD if is_early else AFTER_UPDATE]
        base = base_of(foreign, IMIX.bases)
        super().__init__(
            foreign, mounts, facade=EngineFacade, base=base, priority=priority_of(foreign)
        )

    def before_run(self, run: Run) -> None:
        super().before_run(run)
        self.has_begun = False
        self.facade.companion.join(run)
        # iMIX's stages have no arguments: this attribute is all that a hook knows of the run.
        self.foreign.trainer = self.facade  # type: ignore[attr-defined]


# --- how each stage is called ---------------------------------------------------------------------


def _plain(method: Method, adapter: Adapter) -> Call:
    def call(run: Run) -> None:
        adapter.facade.hook = adapter.name
        method()

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
    Mount("before_train", "before_train", _plain, 0),
    Mount("before_train_epoch", "before_train_epoch", _by_epoch, 0),
    Mount("before_train_iter", "before_train_iter", _plain, 0),
    Mount("after_train_epoch", "after_train_epoch", _by_epoch, 0),
    Mount("after_run", "after_train", _at_end, 0),
)
AFTER_UPDATE = Mount("after_train_iter", "after_train_iter", _plain, 0)
BEFORE_BACKWARD = Mount("after_loss", "after_train_iter", _in_training, 0)
