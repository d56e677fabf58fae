"""`VisslCompanion`: count phases and batches as VISSL does, and keep what a task owns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from torch import Tensor

from hookloop.dialects import Companion, Waiting, output_of
from hookloop_dialects.vissl.ema_model import ModelEmaV2
from hookloop_dialects.vissl.loss_module import restore_loss
from hookloop_dialects.vissl.views import LastBatch

if TYPE_CHECKING:
    from torch import nn

    from hookloop import Run
    from hookloop_dialects.vissl.classy_vision.meters.classy_meter import ClassyMeter


class VisslCompanion(Companion):
    """Count phases and batches, keep the losses of a phase, and feed the meters of the config.

    Args:
        loss: The loss module; its state is kept in checkpoints.
        meters: The meters that the config describes.
        meters_train: Whether they measure train phases too.

    Attributes:
        phase_idx: Index of the current phase; -1 before the first.
        train_phase_idx: Index of the current or last train phase.
        is_training: Whether this run trains.
        ended_in: The phase that ran last; empty while none has.
        batch_time: Seconds of each batch of all phases, as VISSL keeps them.
        fetch_time: Seconds that the current batch was waited for.
        perf_log: Samples per second of the last phases, as ClassyVision records them.
        plain_losses: Names of the hooks for which a loss is not multiplied by its samples.
        unwraps: Whether a single output is taken out of its list before the loss, as in VISSL.
        done_training: Tells after each epoch whether to stop, if a hook has set it.
        ema_model: The average of the weights, once a hook has asked for it.
        close_iterator: Ends the pass over the data that a hook has begun, if there is one.
    """

    name = "dialect:vissl"

    def __init__(
        self,
        loss: nn.Module | None = None,
        meters: Sequence[ClassyMeter] = (),
        meters_train: bool = True,
    ) -> None:
        self.meters = list(meters)
        self.meters_train = meters_train
        self.phase_idx = -1
        self.train_phase_idx = -1
        self.is_training = False
        self.ended_in = ""
        self.batch_time: list[float] = []
        self.fetch_time = 0.0
        self.perf_log: list[dict[str, object]] = []
        self.plain_losses: set[str] = set()
        self.unwraps = False
        self.done_training: Callable[[], bool] | None = None
        self.ema_model: ModelEmaV2 | None = None
        self.close_iterator: Callable[[], None] | None = None
        self._loss = loss
        self._ema_state: Mapping[str, Tensor] | None = None
        self._local = -1  # VISSL starts here, and adds 1 at the start of each phase.
        self._first = 0  # The iteration in which the current phase began.
        self._plain: list[float] = []
        self._weighted: list[float] = []
        self._waiting = Waiting()
        self._sizes: list[int] = []
        self._timed = 0  # Entries of `batch_time` when the last batch ended.
        self._batch_ended = 0.0  # The end of the last batch, or the start of the phase.
        self._phase_began = 0.0
        self._samples = 0

    def state_dict(self) -> dict[str, object]:
        # Batches since the start of the phase follow from the engine's own counter.
        return {
            "phase_idx": self.phase_idx,
            "train_phase_idx": self.train_phase_idx,
            "local": self._local,
            "first": self._first,
            **self._states(),
        }

    def _states(self) -> dict[str, object]:
        """Return the state of the loss, of the average and of the meters, where there is any."""
        loss = self._loss.state_dict() if self._loss is not None else None
        ema = self.ema_model.module.state_dict() if self.ema_model is not None else self._ema_state
        meters = [meter.get_classy_state() for meter in self.meters]
        states = {"loss": loss, "ema_model": ema, "meters": meters}
        return {name: state for name, state in states.items() if state}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        self.phase_idx = cast("int", state["phase_idx"])
        self.train_phase_idx = cast("int", state["train_phase_idx"])
        self._local = cast("int", state["local"])
        self._first = cast("int", state["first"])
        if self._loss is not None and "loss" in state:
            restore_loss(self._loss, cast("Mapping[str, Any]", state["loss"]))
        # Made again from this state when a hook next asks for it.
        self._ema_state = cast("Mapping[str, Tensor] | None", state.get("ema_model"))
        self.ema_model = None
        for meter, saved in zip(self.meters, cast("list[Any]", state.get("meters", ()))):  # noqa: B905 - a config may have changed
            meter.set_classy_state(saved)

    def average(self, run: Run, decay: float, device: str | None) -> ModelEmaV2:
        """Return the average of the weights; the first call makes it."""
        if self.ema_model is None:
            self.ema_model = ModelEmaV2(run.model, decay=decay, device=device)
            if self._ema_state is not None:
                self.ema_model.module.load_state_dict(self._ema_state)
        return self.ema_model

    def local_iteration(self, run: Run) -> int:
        """Return the batches of all phases, plus one for each phase but the first."""
        # Computed from the engine's counter, so that a training iteration costs nothing.
        within = run.progress.iter - self._first if run.phase == "train" else 0
        return self._local + max(0, within)

    def losses(self, hook: str) -> list[float]:
        """Return the loss of each batch of the phase, as the system of a hook counts it."""
        self._read()
        # ClassyVision appends the loss, VISSL multiplies it by the samples.
        return self._plain if hook in self.plain_losses else self._weighted

    def reset_losses(self, losses: list[float]) -> None:
        """Replace the list of losses."""
        self._waiting, self._sizes = Waiting(), []
        self._plain, self._weighted = list(losses), list(losses)
        self._samples = 0

    def before_run(self, run: Run) -> None:
        self.is_training = False
        self.ended_in = ""
        self.batch_time, self._timed = [], 0
        self.done_training = None

    def after_run(self, run: Run) -> None:
        self._end_pass()

    def before_train(self, run: Run) -> None:
        self.is_training = True

    def before_train_epoch(self, run: Run) -> None:
        # A phase that is resumed in the middle was counted before its checkpoint.
        if run.progress.iter_in_epoch == 0:
            self.train_phase_idx += 1
            self._start_phase(run)
        self.ended_in = run.phase
        self._batch_ended = perf_counter()

    def before_val_epoch(self, run: Run) -> None:
        self._start_phase(run)
        self.ended_in = run.phase

    before_test_epoch = before_val_epoch

    def before_train_iter(self, run: Run) -> None:
        self.fetch_time = perf_counter() - self._batch_ended

    before_val_iter = before_test_iter = before_train_iter

    def after_forward(self, run: Run) -> None:
        output = run.output
        # Models of VISSL return a list, of a single output too.
        if self.unwraps and isinstance(output, list | tuple) and len(output) == 1:
            run.output = output[0]

    def after_loss(self, run: Run) -> None:
        if run.loss is None:
            return
        batch = run.batch
        first = batch[0] if type(batch) is tuple or type(batch) is list else None
        # The common forms directly, at a fifth of the cost of run.batch_size.
        self._sizes.append(first.shape[0] if type(first) is Tensor else run.batch_size)
        if self._waiting.add(run.loss if run.loss.ndim == 0 else run.loss.mean()):
            self._read()
        if self.meters and (self.meters_train or run.phase != "train"):
            self._measure(run)

    def _measure(self, run: Run) -> None:
        if run.place is not None and not run.place.own:  # A sample that does not count.
            return
        output, target = _on_cpu(output_of(run.output)), _on_cpu(LastBatch(run).target)
        for meter in self.meters:
            meter.update(output, target)

    def after_train_iter(self, run: Run) -> None:
        self._mark()

    def after_train_epoch(self, run: Run) -> None:
        self._end_phase(run)

    def after_val_epoch(self, run: Run, metrics: object) -> None:
        self._end_phase(run)

    after_test_epoch = after_val_epoch

    def after_epoch(self, run: Run) -> None:
        if self.done_training is not None and self.done_training():
            run.stop("a hook has set task.done_training")

    # The engine has no counter of evaluated batches, so these are counted one by one.
    def after_val_iter(self, run: Run) -> None:
        self._local += 1
        self._mark()

    after_test_iter = after_val_iter

    def _mark(self) -> None:
        """Record the time since the last batch ended."""
        now = perf_counter()
        # Hooks of the first versions of VISSL add the time of each batch themselves.
        if len(self.batch_time) == self._timed:
            self.batch_time.append(now - self._batch_ended)
        self._timed = len(self.batch_time)
        self._batch_ended = now

    def _start_phase(self, run: Run) -> None:
        self.phase_idx += 1
        # Adds the training batches since the last phase; from here they are counted again.
        self._local += run.progress.iter - self._first + 1
        self._first = run.progress.iter
        self._batch_ended = perf_counter()  # The time between two phases is not a batch's.
        self.reset_losses([])
        for meter in self.meters:
            meter.reset()
        self._end_pass()
        # ClassyVision forgets the record of a phase after its hooks, and then adds the total.
        self.perf_log = [{**entry, "tag": f"{entry['tag']}_total"} for entry in self.perf_log[-1:]]
        self._phase_began = perf_counter()

    def _end_phase(self, run: Run) -> None:
        seconds = max(perf_counter() - self._phase_began, 1e-9)
        # The sizes are known without reading the losses, which would wait for the GPU.
        samples = (self._samples + sum(self._sizes)) * run.world.size
        kind = "train" if run.phase == "train" else "test"
        entry = {"tag": kind, "phase_idx": self.train_phase_idx, "im_per_sec": samples / seconds}
        self.perf_log.append(entry)
        for meter in self.meters:
            meter.sync_state()

    def _end_pass(self) -> None:
        """End a pass over the data that a hook has begun and not ended."""
        if self.close_iterator is not None:
            self.close_iterator()
            self.close_iterator = None

    def _read(self) -> None:
        """Read the losses that wait on the device, in one copy."""
        sizes, self._sizes = self._sizes, []
        losses = self._waiting.read()
        self._plain += losses
        self._weighted += [loss * size for loss, size in zip(losses, sizes, strict=True)]
        self._samples += sum(sizes)


def _on_cpu(value: Any) -> Any:  # noqa: ANN401 - an output or targets
    """Return tensors, or a list of them, in main memory and without their graph."""
    if isinstance(value, list | tuple):
        return [_on_cpu(part) for part in value]
    return value.detach().cpu() if isinstance(value, Tensor) else value
