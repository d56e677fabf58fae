"""Glazes at our mount points.

light -> before_train                    cool -> after_train_epoch
fill(batch) -> before_train_iter         turned(batch, loss) -> after_train_iter
inspect(marks=) -> after_val_epoch       reglaze -> after every second turn
cracked(error) -> on_exception           empty -> after_run
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hookloop import Hook, Point
from hookloop.dialects import Adapter, Call, Catalogued, Method, Mount, base_of
from hookloop.errors import HookError
from hookloop_kiln.dialect import KILN
from hookloop_kiln.kiln import Kiln

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hookloop import Run


class GlazeAdapter(Adapter):
    """One glaze."""

    facade: Kiln
    fires = (Point("on_reglaze"),)

    def __init__(self, glaze: object) -> None:
        base = base_of(glaze, KILN.bases)
        super().__init__(glaze, MOUNTS, facade=Kiln, base=base, priority=priority_of(glaze))

    def bind_facade(self, run: Run) -> None:
        super().bind_facade(run)
        self.facade.ledger.join(run)


def adapt(glaze: object) -> list[Hook]:
    """Return the native hooks for a glaze."""
    if isinstance(glaze, Catalogued):
        natives = list(glaze.native_hooks())
        for native in natives:
            native.priority = priority_of(glaze)
        return natives
    adapter = GlazeAdapter(glaze)
    if not adapter.acts:
        raise HookError(f"{type(glaze).__name__} would do nothing: none of its methods is called.")
    return [adapter]


def priority_of(glaze: object) -> int:
    """Translate a shelf, 0 to 10 with the highest first, into a priority, with the lowest first."""
    return 100 - 10 * int(getattr(glaze, "shelf", 5))


def _plain(method: Method, adapter: Adapter) -> Call:
    def call(run: Run) -> None:
        adapter.facade.hook = adapter.name
        method(adapter.facade)

    return call


def _with_batch(method: Method, adapter: Adapter) -> Call:
    def call(run: Run) -> None:
        adapter.facade.hook = adapter.name
        method(adapter.facade, run.batch)

    return call


def _with_loss(method: Method, adapter: Adapter) -> Call:
    def call(run: Run) -> None:
        adapter.facade.hook = adapter.name
        method(adapter.facade, run.batch, run.loss)

    return call


def _with_marks(method: Method, adapter: Adapter) -> Call:
    def call(run: Run, metrics: Mapping[str, float]) -> None:
        adapter.facade.hook = adapter.name
        method(adapter.facade, marks=dict(metrics))

    return call


def _with_error(method: Method, adapter: Adapter) -> Call:
    def call(run: Run, error: BaseException) -> None:
        cast("GlazeAdapter", adapter).facade.hook = adapter.name
        method(adapter.facade, error)

    return call


MOUNTS = (  # Our point, their method, how it is called, and with how many arguments.
    Mount("before_train", "light", _plain, 1),
    Mount("before_train_iter", "fill", _with_batch, 2),
    Mount("after_train_iter", "turned", _with_loss, 3),
    Mount("after_train_epoch", "cool", _plain, 1),
    Mount("after_val_epoch", "inspect", _with_marks, 1, ("marks",)),
    Mount("on_reglaze", "reglaze", _plain, 1),
    Mount("on_exception", "cracked", _with_error, 2),
    Mount("after_run", "empty", _plain, 1),
)
