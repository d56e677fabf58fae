"""``mmengine.hooks.hook``: the base class of MMEngine's hooks, with its helpers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hookloop.dialects import length_of

if TYPE_CHECKING:
    from hookloop_mmengine.facade import RunnerFacade as Runner

DATA_BATCH = dict[str, object] | tuple[object, ...] | list[object] | None
_MODES = ("train", "val", "test")


class Hook:
    """The base class of MMEngine's hooks, with a method for each of its 22 mount points.

    The methods of one mode call ``_before_epoch``, ``_after_epoch``, ``_before_iter`` or
    ``_after_iter`` with that mode, unless they are overridden.
    """

    priority: int | str = "NORMAL"
    stages = (
        "before_run", "after_load_checkpoint", "before_train", "before_train_epoch",
        "before_train_iter", "after_train_iter", "after_train_epoch", "before_val",
        "before_val_epoch", "before_val_iter", "after_val_iter", "after_val_epoch", "after_val",
        "before_save_checkpoint", "after_train", "before_test", "before_test_epoch",
        "before_test_iter", "after_test_iter", "after_test_epoch", "after_test", "after_run",
    )  # fmt: skip

    def before_run(self, runner: Runner) -> None: ...
    def after_run(self, runner: Runner) -> None: ...
    def before_train(self, runner: Runner) -> None: ...
    def after_train(self, runner: Runner) -> None: ...
    def before_val(self, runner: Runner) -> None: ...
    def after_val(self, runner: Runner) -> None: ...
    def before_test(self, runner: Runner) -> None: ...
    def after_test(self, runner: Runner) -> None: ...
    def before_save_checkpoint(self, runner: Runner, checkpoint: dict[str, object]) -> None: ...
    def after_load_checkpoint(self, runner: Runner, checkpoint: dict[str, object]) -> None: ...

    def before_train_epoch(self, runner: Runner) -> None:
        self._before_epoch(runner, mode="train")

    def before_val_epoch(self, runner: Runner) -> None:
        self._before_epoch(runner, mode="val")

    def before_test_epoch(self, runner: Runner) -> None:
        self._before_epoch(runner, mode="test")

    def after_train_epoch(self, runner: Runner) -> None:
        self._after_epoch(runner, mode="train")

    def after_val_epoch(self, runner: Runner, metrics: dict[str, float] | None = None) -> None:
        self._after_epoch(runner, mode="val")

    def after_test_epoch(self, runner: Runner, metrics: dict[str, float] | None = None) -> None:
        self._after_epoch(runner, mode="test")

    def before_train_iter(
        self, runner: Runner, batch_idx: int, data_batch: DATA_BATCH = None
    ) -> None:
        self._before_iter(runner, batch_idx=batch_idx, data_batch=data_batch, mode="train")

    def before_val_iter(
        self, runner: Runner, batch_idx: int, data_batch: DATA_BATCH = None
    ) -> None:
        self._before_iter(runner, batch_idx=batch_idx, data_batch=data_batch, mode="val")

    def before_test_iter(
        self, runner: Runner, batch_idx: int, data_batch: DATA_BATCH = None
    ) -> None:
        self._before_iter(runner, batch_idx=batch_idx, data_batch=data_batch, mode="test")

    def after_train_iter(
        self,
        runner: Runner,
        batch_idx: int,
        data_batch: DATA_BATCH = None,
        outputs: dict[str, object] | None = None,
    ) -> None:
        self._after_iter(runner, batch_idx, data_batch, outputs, mode="train")

    def after_val_iter(
        self,
        runner: Runner,
        batch_idx: int,
        data_batch: DATA_BATCH = None,
        outputs: Sequence[object] | None = None,
    ) -> None:
        self._after_iter(runner, batch_idx, data_batch, outputs, mode="val")

    def after_test_iter(
        self,
        runner: Runner,
        batch_idx: int,
        data_batch: DATA_BATCH = None,
        outputs: Sequence[object] | None = None,
    ) -> None:
        self._after_iter(runner, batch_idx, data_batch, outputs, mode="test")

    def _before_epoch(self, runner: Runner, mode: str = "train") -> None: ...
    def _after_epoch(self, runner: Runner, mode: str = "train") -> None: ...
    def _before_iter(
        self, runner: Runner, batch_idx: int, data_batch: DATA_BATCH = None, mode: str = "train"
    ) -> None: ...
    def _after_iter(
        self,
        runner: Runner,
        batch_idx: int,
        data_batch: DATA_BATCH = None,
        outputs: object = None,
        mode: str = "train",
    ) -> None: ...

    def every_n_epochs(self, runner: Runner, n: int, start: int = 0) -> bool:
        """Return, at an ``after_`` point, whether the epoch is the n-th from ``start`` on."""
        # True at `start` itself, where the difference is 0, and False before it.
        done = runner.epoch + 1 - start
        return n > 0 and done >= 0 and done % n == 0

    def every_n_inner_iters(self, batch_idx: int, n: int) -> bool:
        """Return whether the batch is an n-th one of its epoch."""
        return n > 0 and (batch_idx + 1) % n == 0

    def every_n_train_iters(self, runner: Runner, n: int, start: int = 0) -> bool:
        """Return, at an ``after_`` point, whether the iteration is the n-th from ``start`` on."""
        done = runner.iter + 1 - start
        return n > 0 and done >= 0 and done % n == 0

    def end_of_epoch(self, dataloader: Sequence[object], batch_idx: int) -> bool:
        """Return whether the batch is the last one of the loader."""
        return batch_idx + 1 == length_of(dataloader)  # A stream has no length.

    def is_last_train_epoch(self, runner: Runner) -> bool:
        """Return, at an ``after_`` point, whether the epoch is the last one."""
        return runner.epoch + 1 == runner.max_epochs

    def is_last_train_iter(self, runner: Runner) -> bool:
        """Return, at an ``after_`` point, whether the iteration is the last one."""
        return runner.iter + 1 == runner.max_iters

    def get_triggered_stages(self) -> list[str]:
        """Return the points at which this hook does something."""

        def is_overridden(name: str) -> bool:
            # On the class, because each access through an object makes a new bound method.
            return getattr(type(self), name) is not getattr(Hook, name)

        found = {stage for stage in self.stages if is_overridden(stage)}
        for when in ("before", "after"):
            for what in ("epoch", "iter"):
                if is_overridden(f"_{when}_{what}"):
                    found |= {f"{when}_{mode}_{what}" for mode in _MODES}
        # In the order of the stages; MMEngine's list has no order.
        return [stage for stage in self.stages if stage in found]
