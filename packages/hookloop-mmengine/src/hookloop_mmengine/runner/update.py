"""An iteration in MMEngine's form: the model makes the update itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from hookloop import Update
from hookloop.dialects import is_scalar, place_of
from hookloop_mmengine.optim import OptimWrapper, OptimWrapperDict
from hookloop_mmengine.runner.amp import autocast
from hookloop_mmengine.runner.sharing import SharedGradients, SharedNumbers

if TYPE_CHECKING:
    from hookloop import Run
    from hookloop_mmengine.evaluator import Evaluator
    from hookloop_mmengine.runner.runner import Runner


class ModelUpdate(Update):
    """Call ``train_step``, ``val_step`` and ``test_step`` of the model.

    Backward, clipping, accumulation and the update are done when ``train_step`` returns, so a
    native hook at ``after_loss``, ``after_backward`` or ``before_update`` cannot change them.

    Args:
        runner: The runner with the optimizer wrapper.
        optimizers: The optimizers in the wrapper.
    """

    averages_itself = True  # Where its optimizer wrappers call backward.

    def __init__(self, runner: Runner, optimizers: list[torch.optim.Optimizer]) -> None:
        # The loop calls these two; everything else of an update is switched off below.
        super().__init__("", self._step, self._loss, optimizers)
        self.returns_loss = True
        self._runner = runner
        self._numbers: SharedNumbers | None = None

    def share(self, run: Run, *, finds_unused: bool) -> None:
        """Average gradients and numbers over all processes from now on."""
        wrapper = cast("OptimWrapper", self._runner.optim_wrapper)
        single = list(wrapper.values()) if isinstance(wrapper, OptimWrapperDict) else [wrapper]
        is_frozen = not all(parameter.requires_grad for parameter in self.parameters())
        thaws = any(hook.changes_what_trains for hook in run.hooks)
        unused = finds_unused or len(single) > 1 or is_frozen or thaws
        for one in single:
            if isinstance(one.sharing, SharedGradients):  # Of an earlier training.
                one.sharing.close()
            one.sharing = SharedGradients(run, one.optimizer, finds_unused=unused)
        self._numbers = SharedNumbers()

    @property
    def keeps_gradients(self) -> bool:
        """Whether gradients may wait for a later step; a custom wrapper may always do so."""
        return getattr(self._runner.optim_wrapper, "_accumulative_counts", 0) != 1

    def _step(self, run: Run) -> object:
        if run.phase == "train":
            wrapper = self._runner.optim_wrapper
            if self._numbers is None:
                return run.model.train_step(run.batch, optim_wrapper=wrapper)  # type: ignore[operator]
            run.place = place_of(run)
            output = run.model.train_step(run.batch, optim_wrapper=wrapper)  # type: ignore[operator]
            return self._numbers.of_all(run, output) if isinstance(output, Mapping) else output
        step = run.model.val_step if run.phase == "val" else run.model.test_step
        if not self._runner.evaluates_in_half(run.phase):
            return step(run.batch)  # type: ignore[operator]
        with autocast():
            return step(run.batch)  # type: ignore[operator]

    def _loss(self, run: Run) -> Tensor | None:
        output = run.output
        return output.get("loss") if run.phase == "train" and isinstance(output, dict) else None

    def zero_grad(self) -> None:
        """Do nothing: the optimizer wrapper does this after each step."""

    def record(self, run: Run, loss: Tensor) -> None:
        # All outputs of a step, and not the loss alone, as RuntimeInfoHook does.
        for name, value in cast("Mapping[str, object]", run.output).items():
            if is_scalar(value):
                run.metrics.put(f"train/{name}", value)

    def backward(self, loss: Tensor) -> None:
        """Do nothing: ``train_step`` has done it."""

    def note_no_loss(self, run: Run, *, is_of_rank: bool = False) -> None:
        """Do nothing: ``train_step`` makes its updates, and calls their losses what it likes."""

    def unscale(self) -> None:
        """Do nothing: ``train_step`` has done it."""

    def apply(self, run: Run) -> None:
        """Do nothing: ``train_step`` has done it."""


class EvaluatorMetric:
    """An evaluator as a native metric; the names are those that it returns.

    Args:
        runner: The runner, which stores the unchanged metrics for MMEngine's hooks.
        evaluator: The evaluator.
        size: The number of samples.
    """

    # As torchmetrics does: on several processes, its evaluator gathers the results itself.
    dist_sync_on_step = False

    averages_itself = True  # Where its optimizer wrappers call backward.

    def __init__(self, runner: Runner, evaluator: Evaluator, size: int) -> None:
        self._runner = runner
        self._evaluator = evaluator
        self._size = size

    def update(self, output: object, targets: object, /) -> None:
        """Pass one batch to the evaluator."""
        run = self._runner.run
        # What val_step has returned, as it is: MMEngine's evaluator goes through it, too.
        self._evaluator.process(data_samples=run.output, data_batch=run.batch)
        if run.place is not None:
            self._evaluator.note_batch(run.place.batch)

    def compute(self) -> object:
        """Return the metrics that are numbers; MMEngine's hooks get all of them."""
        metrics = self._evaluator.evaluate(self._size)
        self._runner.raw_metrics = metrics
        return {
            name: number
            for name, value in metrics.items()
            if (number := as_number(value)) is not None
        }

    def reset(self) -> None:
        """Do nothing: `compute` has emptied the evaluator."""


def as_number(value: object) -> float | None:
    """Return a metric as a number, or None if it is not one."""
    if isinstance(value, bool | int | float):
        return float(value)
    if getattr(value, "size", None) is not None and callable(getattr(value, "item", None)):
        count = value.numel() if isinstance(value, Tensor) else value.size  # type: ignore[attr-defined]
        return float(value.item()) if count == 1 else None  # type: ignore[attr-defined]
    return None
