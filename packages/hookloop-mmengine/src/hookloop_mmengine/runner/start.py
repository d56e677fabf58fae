"""The runner's own hooks: load a checkpoint, prepare the loop, add MMEngine's keys to files."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, cast

from hookloop import Every, Hook, Priority
from hookloop_mmengine.checkpoint_view import meta_of
from hookloop_mmengine.runner.checkpoint import put_weights, read_checkpoint

if TYPE_CHECKING:
    from hookloop import Run
    from hookloop.dialects import Driven
    from hookloop_mmengine.runner.runner import Runner
    from hookloop_mmengine.runner.update import ModelUpdate

_log = logging.getLogger("hookloop")
_POSITION = (
    "last_step", "_global_step", "_last_value", "best", "num_bad_epochs", "cooldown_counter",
)  # fmt: skip


class LoadForeign(Hook):
    """Load weights, or continue from a checkpoint that MMEngine itself wrote.

    The weights, optimizer, schedulers and counters are restored. MMEngine's files hold neither the
    position in the data nor the random numbers, so an epoch starts from its first batch.

    Args:
        runner: The runner.
        path: The file.
        resume: Whether to continue, or to load the weights only.
    """

    name = "mmengine_load"
    priority = Priority.LOWEST
    takes_part_in_training = True

    def __init__(self, runner: Runner, path: str, *, resume: bool) -> None:
        self._runner = runner
        self._path = path
        self._is_resume = resume
        self._done = False

    def before_run(self, run: Run) -> None:
        # Once, because each call of the trainer fires before_run.
        if self._done:
            return
        self._done = True
        runner = self._runner
        checkpoint = read_checkpoint(self._path)
        runner._resume = self._is_resume
        # Before the weights are copied, so that hooks can change them, as in MMEngine.
        runner.call_hook("after_load_checkpoint", checkpoint=checkpoint)
        put_weights(run.model, checkpoint)
        runner.logger.info("Load checkpoint from %s", self._path)
        if self._is_resume:
            self._restore(run, checkpoint)

    def _restore(self, run: Run, checkpoint: Mapping[str, object]) -> None:
        meta = cast("Mapping[str, int]", checkpoint.get("meta", {}))
        run.progress.iter = meta.get("iter", 0)
        # A training by iterations is one long epoch here, which has not been completed.
        run.progress.epoch = 0 if self._runner.is_iter_based else meta.get("epoch", 0)
        if self._runner.is_iter_based:
            run.progress.iter_in_epoch = run.progress.iter
            # Its one epoch is under way as soon as there is an iteration.
            run.progress.stage = "inside" if run.progress.iter else "between"
        if "optimizer" in checkpoint and run.optimizers:
            wrapper = self._runner.optim_wrapper
            wrapper.load_state_dict(cast("Mapping[str, object]", checkpoint["optimizer"]))  # type: ignore[attr-defined]
        saved = checkpoint.get("param_schedulers")
        states = cast("list[Mapping[str, object]]", saved if isinstance(saved, list) else [])
        # Not strict: the config may have more or fewer schedulers than when the file was written.
        for schedule, state in zip(run.schedules.values(), states, strict=False):
            # The position only: MMEngine's files also hold the old `end`, which would cut an
            # extended training short.
            position = {key: state[key] for key in _POSITION if key in state}
            schedule.scheduler.load_state_dict(position)
        _log.info("resumed epoch: %d, iter: %d", run.progress.epoch, run.progress.iter)


class PrepareRun(Hook):
    """Do what MMEngine's loops do around the training.

    Args:
        runner: The runner.
        intervals: Milestones, with the interval of validations from then on.

    Attributes:
        driven: The Trainer; its interval of validations changes at the milestones.
        update: The update, which several processes make together.
    """

    name = "mmengine_loop"
    priority = Priority.HIGHEST

    driven: Driven
    update: ModelUpdate
    takes_part_in_training = True

    def __init__(self, runner: Runner, intervals: list[tuple[int, int]]) -> None:
        self._runner = runner
        self._milestones = [milestone for milestone, _ in intervals]
        self._intervals = [interval for _, interval in intervals]

    def before_train(self, run: Run) -> None:
        if not run.world.is_alone:
            self.update.share(run, finds_unused=self._runner.finds_unused)
        # The wrapper has to know the total number, to make a step of the rest.
        done, limit = run.progress.iter, self._runner.max_iters
        self._runner.optim_wrapper.initialize_count_status(run.model, done, limit)  # type: ignore[attr-defined]

    def after_train_iter(self, run: Run) -> None:
        if self._intervals and self.driven.val_every.unit == "iters":
            self._set_interval(run.progress.iter)

    def after_train_epoch(self, run: Run) -> None:
        if self._intervals and self.driven.val_every.unit == "epochs":
            self._set_interval(run.progress.epoch)

    def _set_interval(self, done: int) -> None:
        # A milestone acts one step early, as it does in MMEngine.
        index = bisect_right(self._milestones, done + 1) - 1
        if index >= 0:
            self.driven.val_every = Every(self._intervals[index], self.driven.val_every.unit)


class AddForeignKeys(Hook):
    """Add MMEngine's keys to each checkpoint, for scripts that read such files.

    The tensors are shared with our own keys, so the file does not grow. With averaged weights,
    ``state_dict`` holds the average and ``ema_state_dict`` the raw weights, as in MMEngine.

    Args:
        runner: The runner.
    """

    name = "mmengine_keys"
    priority = Priority.LOWEST
    takes_part_in_training = True

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def before_train_epoch(self, run: Run) -> None:
        # MMEngine sets the mode after its hooks, so that a mode which they set does not stay.
        run.model.train()

    def before_save_checkpoint(self, run: Run, checkpoint: MutableMapping[str, object]) -> None:
        # What hooks have put into `meta` wins.
        checkpoint["meta"] = meta_of(self._runner) | cast(
            "dict[str, object]", checkpoint.get("meta", {})
        )
        checkpoint["state_dict"] = checkpoint["model"]
        # An EMAHook that acts by its methods has exchanged the weights itself.
        if "averaged" in checkpoint and "ema_state_dict" not in checkpoint:
            checkpoint["state_dict"] = checkpoint["averaged"]
            raw = cast("Mapping[str, object]", checkpoint["model"])
            checkpoint["ema_state_dict"] = {f"module.{name}": value for name, value in raw.items()}
        checkpoint["message_hub"] = self._runner.message_hub.state_dict()
        checkpoint["optimizer"] = self._runner.optim_wrapper.state_dict()  # type: ignore[attr-defined]
        checkpoint["param_schedulers"] = [
            schedule.state_dict() for schedule in run.schedules.values()
        ]

    def state_dict(self) -> dict[str, object]:
        scaler = getattr(self._runner.optim_wrapper, "loss_scaler", None)
        return {
            "message_hub": self._runner.message_hub.state_dict(),
            "loss_scaler": scaler.state_dict() if scaler is not None else None,
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        hub = cast("Mapping[str, object]", state["message_hub"])
        self._runner.message_hub.load_state_dict(hub)
        scaler = getattr(self._runner.optim_wrapper, "loss_scaler", None)
        if scaler is not None and state.get("loss_scaler"):
            scaler.load_state_dict(state["loss_scaler"])
