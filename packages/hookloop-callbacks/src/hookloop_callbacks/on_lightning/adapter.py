"""Lightning's callbacks at our mount points, with the arguments ``trainer`` and ``pl_module``.

setup                       before_run
on_fit_start                before_train, of all callbacks before the first on_train_start
on_train_start              before_train
on_train_epoch_start        before_train_epoch
on_train_batch_start        before_train_iter; with accumulation, also before each further batch
on_before_zero_grad         before_train_iter: the gradients of the last update are still there
on_before_backward          after_loss
on_after_backward           after_backward
on_before_optimizer_step    before_update: gradients are complete, unscaled and not clipped yet
on_train_batch_end          after_train_iter, after the schedules have stepped; with accumulation,
                            also after each earlier batch
on_validation_*             the points of a validation; the model is in evaluation mode
on_test_*, on_predict_*     the same for a test and a prediction
on_train_epoch_end          after_epoch, since Lightning validates before it
on_train_end                after_train
on_fit_end, teardown        after_run, unless the run failed
on_save_checkpoint          before_save_checkpoint
on_load_checkpoint          after_load_checkpoint
on_exception                on_exception
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, cast

from hookloop import Hook, Point, Priority
from hookloop.dialects import (
    Adapter,
    Call,
    Method,
    Mount,
    base_of,
    internals_of,
)
from hookloop.errors import HookError
from hookloop_callbacks.dialects import LIGHTNING
from hookloop_callbacks.on_lightning.checkpoint_view import checkpoint_view
from hookloop_callbacks.on_lightning.own_callbacks import check_own_callback, is_last
from hookloop_callbacks.on_lightning.points import (
    BATCH_END,
    BATCH_START,
    EPOCH_END,
    FIT_END,
    FIT_START,
    POINTS,
    PREDICT_START,
    TEST_START,
    VAL_START,
)
from hookloop_callbacks.on_lightning.trainer import TrainerFacade

if TYPE_CHECKING:
    from torch import Tensor

    from hookloop import Run
    from hookloop_callbacks.on_lightning.companion import LightningCompanion

# Lightning 1 called these; Lightning 2 rejects a callback that has one.
REMOVED = {
    "on_init_start": "setup",
    "on_init_end": "setup",
    "on_pretrain_routine_start": "on_fit_start",
    "on_pretrain_routine_end": "on_fit_start",
    "on_epoch_start": "on_train_epoch_start",
    "on_epoch_end": "on_train_epoch_end",
    "on_batch_start": "on_train_batch_start",
    "on_batch_end": "on_train_batch_end",
    "on_keyboard_interrupt": "on_exception",
    "on_configure_sharded_model": "setup",
    "on_before_accelerator_backend_setup": "setup",
}


def adapt(callback: object) -> list[Hook]:
    """Return the native hook for one of Lightning's callbacks."""
    check_own_callback(callback)
    for name, instead in REMOVED.items():
        if callable(getattr(callback, name, None)):
            raise HookError(
                f"{type(callback).__name__}.{name} is a hook of Lightning 1, which Lightning 2 "
                f"rejects, too: use {instead}."
            )
    adapter = LightningAdapter(callback)
    if not (adapter.acts or _has_state(callback)):
        raise HookError(
            f"{type(callback).__name__} would do nothing: none of its methods is called here. "
            "There is no sanity check: use validation."
        )
    return [adapter]


def _has_state(callback: object) -> bool:
    state = getattr(callback, "state_dict", None)
    return callable(state) and bool(state())


class LightningAdapter(Adapter):
    """One callback of Lightning."""

    facade: TrainerFacade
    fires: tuple[Point, ...] = POINTS

    def __init__(self, callback: object) -> None:
        priority = int(Priority.NORMAL) + (1 if is_last(callback) else 0)
        base = base_of(callback, LIGHTNING.bases)
        super().__init__(callback, MOUNTS, facade=TrainerFacade, base=base, priority=priority)

    def bind_facade(self, run: Run) -> None:
        super().bind_facade(run)
        self.facade.join(run)
        # As Lightning does before the first call, whether or not the callback has such names.
        foreign, module = cast("Any", self.foreign), self.facade.lightning_module
        foreign.log, foreign.log_dict = module.log, module.log_dict


# --- how each method is called --------------------------------------------------------------------


def _facade(adapter: Adapter) -> TrainerFacade:
    facade = cast("TrainerFacade", adapter.facade)
    facade.hook = adapter.name
    return facade


def _plain(method: Method, adapter: Adapter) -> Call:
    """Return a call with trainer and module."""

    def call(run: Run) -> None:
        trainer = cast("TrainerFacade", adapter.facade)
        trainer.hook = adapter.name
        method(trainer, trainer.lightning_module)

    return call


def _after_evaluation(method: Method, adapter: Adapter) -> Call:
    def call(run: Run, *metrics: Mapping[str, float]) -> None:  # None in a prediction.
        trainer = _facade(adapter)
        method(trainer, trainer.lightning_module)

    return call


def _with_stage(method: Method, adapter: Adapter) -> Call:
    def call(run: Run) -> None:
        trainer = _facade(adapter)
        method(trainer, trainer.lightning_module, stage=trainer.state.fn)

    return call


def _teardown(method: Method, adapter: Adapter) -> Call:
    call_method = _with_stage(method, adapter)

    def call(run: Run) -> None:
        # As in Lightning, which leaves it out after an exception.
        if run.outcome.status != "failed":
            call_method(run)

    return call


def _new_epoch(method: Method, adapter: Adapter) -> Call:
    call_method = _plain(method, adapter)

    def call(run: Run) -> None:
        # An epoch that is resumed in the middle began before the checkpoint.
        if run.progress.iter_in_epoch == 0:
            call_method(run)

    return call


def _batch_start(method: Method, adapter: Adapter) -> Call:
    def call(run: Run) -> None:
        trainer = cast("TrainerFacade", adapter.facade)
        trainer.hook = adapter.name
        method(trainer, trainer.lightning_module, run.batch, trainer.companion.batch_idx(run))

    return call


def _batch_end(method: Method, adapter: Adapter) -> Call:
    def call(run: Run) -> None:
        trainer = cast("TrainerFacade", adapter.facade)
        trainer.hook = adapter.name
        companion = trainer.companion
        batch, index = companion.last_batch
        method(trainer, trainer.lightning_module, _outputs(run, companion), batch, index)

    return call


def _outputs(run: Run, companion: LightningCompanion) -> dict[str, object]:
    """Return what Lightning makes of the result of a training step: a dict with the loss."""
    output = run.output
    extra = output if isinstance(output, dict) and "loss" in output else {}
    loss = run.loss if run.accumulate == 1 else companion.loss
    return {**extra, "loss": None if loss is None else _share(loss, run).detach()}


def _share(loss: Tensor, run: Run) -> Tensor:
    """Return the loss of a batch as its share of the update, which Lightning divides evenly."""
    return loss if run.accumulate == 1 else loss / run.accumulate


def _evaluation_start(method: Method, adapter: Adapter) -> Call:
    def call(run: Run) -> None:
        trainer = _facade(adapter)
        place = trainer.companion.place
        method(trainer, trainer.lightning_module, run.batch, *place.arguments)

    return call


def _evaluation_end(method: Method, adapter: Adapter) -> Call:
    def call(run: Run) -> None:
        trainer = _facade(adapter)
        place = trainer.companion.place
        method(trainer, trainer.lightning_module, run.output, run.batch, *place.arguments)

    return call


def _before_backward(method: Method, adapter: Adapter) -> Call:
    def call(run: Run) -> None:
        # The point fires in evaluations, too.
        if run.phase == "train" and run.loss is not None:
            trainer = cast("TrainerFacade", adapter.facade)
            trainer.hook = adapter.name
            method(trainer, trainer.lightning_module, _share(run.loss, run))

    return call


def _with_optimizer(method: Method, adapter: Adapter) -> Call:
    def check(run: Run) -> None:
        if internals_of(run).purpose == "train" and len(run.optimizers) != 1:
            raise HookError(
                f"{type(adapter.foreign).__name__} acts before the step of an optimizer, of which "
                f"there are {len(run.optimizers)} ({', '.join(run.optimizers)}): which one steps "
                "is not known here. Use a native hook at before_update."
            )

    def call(run: Run) -> None:
        trainer = cast("TrainerFacade", adapter.facade)
        trainer.hook = adapter.name
        method(trainer, trainer.lightning_module, run.optimizer)

    adapter.attach("before_run", check)
    return call


def _with_exception(method: Method, adapter: Adapter) -> Call:
    def call(run: Run, error: BaseException) -> None:
        trainer = _facade(adapter)
        method(trainer, trainer.lightning_module, error)

    return call


def _with_checkpoint(method: Method, adapter: Adapter) -> Call:
    def call(run: Run, checkpoint: MutableMapping[str, object]) -> None:
        trainer = _facade(adapter)
        with checkpoint_view(run, checkpoint) as view:
            method(trainer, trainer.lightning_module, view)

    return call


STARTS = {"val": VAL_START, "test": TEST_START, "predict": PREDICT_START}


def _evaluation(ours: str, theirs: str) -> tuple[Mount, ...]:
    return (
        Mount(STARTS[ours].name, f"on_{theirs}_start", _plain, 2),
        Mount(f"before_{ours}_epoch", f"on_{theirs}_epoch_start", _plain, 2),
        Mount(f"before_{ours}_iter", f"on_{theirs}_batch_start", _evaluation_start, 4),
        Mount(f"after_{ours}_iter", f"on_{theirs}_batch_end", _evaluation_end, 5),
        Mount(f"after_{ours}_epoch", f"on_{theirs}_epoch_end", _after_evaluation, 2),
        Mount(f"after_{ours}", f"on_{theirs}_end", _plain, 2),
    )


MOUNTS = (
    Mount("before_run", "setup", _with_stage, 2, ("stage",)),
    Mount("after_load_checkpoint", "on_load_checkpoint", _with_checkpoint, 3),
    Mount(FIT_START.name, "on_fit_start", _plain, 2),
    Mount("before_train", "on_train_start", _plain, 2),
    Mount("before_train_epoch", "on_train_epoch_start", _new_epoch, 2),
    Mount("before_train_iter", "on_train_batch_start", _batch_start, 4),
    Mount(BATCH_START.name, "on_train_batch_start", _batch_start, 4),
    Mount("before_train_iter", "on_before_zero_grad", _with_optimizer, 3),
    Mount("after_loss", "on_before_backward", _before_backward, 3),
    Mount("after_backward", "on_after_backward", _plain, 2),
    Mount("before_update", "on_before_optimizer_step", _with_optimizer, 3),
    Mount(BATCH_END.name, "on_train_batch_end", _batch_end, 5),
    *_evaluation("val", "validation"),
    Mount("after_epoch", "on_train_epoch_end", _plain, 2),
    Mount(EPOCH_END.name, "on_train_epoch_end", _plain, 2),
    Mount("after_train", "on_train_end", _plain, 2),
    *_evaluation("test", "test"),
    *_evaluation("predict", "predict"),
    Mount("before_save_checkpoint", "on_save_checkpoint", _with_checkpoint, 3),
    Mount("on_exception", "on_exception", _with_exception, 3),
    Mount(FIT_END.name, "on_fit_end", _plain, 2),
    Mount("after_run", "teardown", _teardown, 2, ("stage",)),
)
