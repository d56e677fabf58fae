"""Callbacks of Transformers at our mount points: ``(args, state, control, **keywords)``.

on_init_end             before_run, once
on_train_begin          before_train
on_epoch_begin          before_train_epoch
on_step_begin           before_train_iter
on_substep_end          after each batch of an update but the last
on_pre_optimizer_step   before_update: the gradients are complete and not clipped yet
on_optimizer_step       after_update
on_step_end             after_train_iter, after the schedules have stepped
on_epoch_end            after_train_epoch
on_prediction_step      after_val_iter, after_test_iter, after_predict_iter
on_log                  when control.should_log asks for it, every args.logging_steps, after each
                        validation, and at the end
on_evaluate             after_val_epoch
on_predict              after_test_epoch, after_predict_epoch
on_save                 after_save_checkpoint
on_train_end            after_train
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from hookloop import Hook, Point
from hookloop.dialects import Adapter, Call, Method, Mount, base_of
from hookloop.errors import HookError
from hookloop_callbacks.dialects import TRANSFORMERS
from hookloop_callbacks.on_transformers.facade import TransformersFacade
from hookloop_callbacks.on_transformers.own_callbacks import check_own_callback
from hookloop_callbacks.on_transformers.points import (
    EPOCH_END,
    LOG,
    POINTS,
    STEP_END,
    SUBSTEP_END,
)

if TYPE_CHECKING:
    from hookloop import Run


def adapt(callback: object) -> list[Hook]:
    """Return the native hook for one callback of Transformers."""
    check_own_callback(callback)
    adapter = TransformersAdapter(callback)
    if not adapter.acts:
        raise HookError(
            f"{type(callback).__name__} would do nothing: none of its methods is called here. "
            "There is no upload to a hub."
        )
    return [adapter]


class TransformersAdapter(Adapter):
    """One callback of Transformers; what its ``state`` has is kept in checkpoints."""

    facade: TransformersFacade
    fires: tuple[Point, ...] = POINTS

    def __init__(self, callback: object) -> None:
        self.has_begun = False
        base = base_of(callback, TRANSFORMERS.bases)
        super().__init__(callback, MOUNTS, facade=TransformersFacade, base=base)

    def bind_facade(self, run: Run) -> None:
        super().bind_facade(run)
        self.facade.join(run)

    def state_dict(self) -> dict[str, object]:
        if not _is_exportable(self.foreign):
            return {}
        return dict(cast("Any", self.foreign).state().get("attributes", {}))

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        for name, value in state.items():
            setattr(self.foreign, name, value)


def _is_exportable(callback: object) -> bool:
    # By name: `state` alone may be anything that its author wanted.
    return any(kind.__name__ == "ExportableState" for kind in type(callback).__mro__)


# --- how each event is called ---------------------------------------------------------------------


def _call(method: Method, adapter: Adapter, **more: object) -> None:
    """Call an event; a control that it returns takes the place of the current one."""
    facade = cast("TransformersFacade", adapter.facade)
    facade.hook = adapter.name
    result = method(facade.args, facade.state, facade.control, **facade.keywords, **more)
    if result is not None:
        facade.control = cast("Any", result)


def _plain(method: Method, adapter: Adapter) -> Call:
    # Written out, because it is called in every step.
    def call(run: Run) -> None:
        facade = cast("TransformersFacade", adapter.facade)
        facade.hook = adapter.name
        result = method(facade.args, facade.state, facade.control, **facade.keywords)
        if result is not None:
            facade.control = cast("Any", result)

    return call


def _once(method: Method, adapter: Adapter) -> Call:
    ours = cast("TransformersAdapter", adapter)

    def call(run: Run) -> None:
        if not ours.has_begun:
            ours.has_begun = True
            _call(method, ours)

    return call


def _new_epoch(method: Method, adapter: Adapter) -> Call:
    def call(run: Run) -> None:
        # An epoch that is resumed in the middle began before the checkpoint.
        if run.progress.iter_in_epoch == 0:
            _call(method, adapter)

    return call


def _with_metrics(method: Method, adapter: Adapter) -> Call:
    def call(run: Run, *metrics: Mapping[str, float]) -> None:  # None in a prediction.
        facade = cast("TransformersFacade", adapter.facade)
        _call(method, adapter, metrics=facade.metrics)

    return call


def _with_logs(method: Method, adapter: Adapter) -> Call:
    def call(run: Run, logs: dict[str, float]) -> None:
        _call(method, adapter, logs=logs)

    return call


def _after_save(method: Method, adapter: Adapter) -> Call:
    def call(run: Run, saved: object) -> None:
        _call(method, adapter)

    return call


KEYWORDS = (
    "model", "processing_class", "optimizer", "lr_scheduler", "train_dataloader",
    "eval_dataloader",
)  # fmt: skip

MOUNTS = (
    Mount("before_run", "on_init_end", _once, 3, KEYWORDS),
    Mount("before_train", "on_train_begin", _plain, 3, KEYWORDS),
    Mount("before_train_epoch", "on_epoch_begin", _new_epoch, 3, KEYWORDS),
    Mount("before_train_iter", "on_step_begin", _plain, 3, KEYWORDS),
    Mount(SUBSTEP_END.name, "on_substep_end", _plain, 3, KEYWORDS),
    Mount("before_update", "on_pre_optimizer_step", _plain, 3, KEYWORDS),
    Mount("after_update", "on_optimizer_step", _plain, 3, KEYWORDS),
    Mount(STEP_END.name, "on_step_end", _plain, 3, KEYWORDS),
    Mount("after_train_epoch", "on_epoch_end", _plain, 3, KEYWORDS),
    Mount(EPOCH_END.name, "on_epoch_end", _plain, 3, KEYWORDS),
    Mount("after_val_iter", "on_prediction_step", _plain, 3, KEYWORDS),
    Mount("after_test_iter", "on_prediction_step", _plain, 3, KEYWORDS),
    Mount("after_predict_iter", "on_prediction_step", _plain, 3, KEYWORDS),
    Mount("after_val_epoch", "on_evaluate", _with_metrics, 3, (*KEYWORDS, "metrics")),
    Mount("after_test_epoch", "on_predict", _with_metrics, 3, (*KEYWORDS, "metrics")),
    Mount("after_predict_epoch", "on_predict", _with_metrics, 3, (*KEYWORDS, "metrics")),
    Mount("after_save_checkpoint", "on_save", _after_save, 3, KEYWORDS),
    Mount(LOG.name, "on_log", _with_logs, 3, (*KEYWORDS, "logs")),
    Mount("after_train", "on_train_end", _plain, 3, KEYWORDS),
)
