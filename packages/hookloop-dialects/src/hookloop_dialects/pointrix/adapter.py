"""Pointrix's hooks at our mount points: one positional argument, steps from 1, in list order.

The methods have the names of our points. ``global_step`` is the number of the iteration in
``before_train_iter`` and ``after_train_iter``, and one more in the validation after it. If the
run fails, ``exception`` is called without arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from hookloop import Hook
from hookloop.dialects import Adapter, Call, Catalogued, Method, Mount, base_of
from hookloop_dialects.dialects import POINTRIX
from hookloop_dialects.pointrix.trainer import TrainerFacade

if TYPE_CHECKING:
    from hookloop import Run

Bind = Callable[[Method, Adapter], Call]


def adapt(foreign: object) -> list[Hook]:
    """Return the native hooks for one of Pointrix's."""
    if isinstance(foreign, Catalogued):
        return list(foreign.native_hooks())
    return [PointrixAdapter(foreign)]


class PointrixAdapter(Adapter):
    """One of Pointrix's hooks."""

    facade: TrainerFacade

    def __init__(self, foreign: object) -> None:
        base = base_of(foreign, POINTRIX.bases)
        # Without a priority: Pointrix never reads that attribute of its hooks.
        super().__init__(foreign, MOUNTS, facade=TrainerFacade, base=base)


def _at(ahead: int) -> Bind:
    """Return a `bind` for calls whose step is ``ahead`` of our count of completed iterations."""

    def bind(method: Method, adapter: Adapter) -> Call:
        ours = cast("PointrixAdapter", adapter)

        def call(run: Run, *arguments: object) -> None:
            facade = ours.facade
            facade.hook = ours.name
            facade.global_step = run.progress.iter + ahead
            method(facade)

        return call

    return bind


def _exception(method: Method, adapter: Adapter) -> Call:
    def call(run: Run, error: BaseException) -> None:
        method()  # Pointrix's launcher passes nothing.

    return call


def _mount(name: str, ahead: int) -> Mount:
    return Mount(name, name, _at(ahead))


# Pointrix increments its step between after_train_iter and the validation. We count an iteration
# before after_train_iter, so only these points are in step with us.
MOUNTS = (
    _mount("before_run", 0),
    _mount("after_load_checkpoint", 0),
    _mount("before_train", 1),
    _mount("before_train_iter", 1),
    _mount("after_train_iter", 0),
    _mount("before_val", 1),
    _mount("before_val_iter", 1),
    _mount("after_val_iter", 1),
    _mount("after_val", 1),
    _mount("before_save_checkpoint", 0),
    _mount("after_train", 1),
    _mount("after_run", 1),
    Mount("on_exception", "exception", _exception, 0),
)
