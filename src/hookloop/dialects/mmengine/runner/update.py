"""An iteration in MMEngine's form: the model makes the update itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from hookloop.core.update import Update
from hookloop.data.microbatches import is_scalar

if TYPE_CHECKING:
    from hookloop.core.run import Run
    from hookloop.dialects.mmengine.evaluator import Evaluator
    from hookloop.dialects.mmengine.runner.runner import Runner


class ModelUpdate(Update):
    """Call ``train_step``, ``val_step`` and ``test_step`` of the model.

    Backward, clipping, accumulation and the update are done when ``train_step`` returns, so a
    native hook at ``after_loss``, ``after_backward`` or ``before_update`` cannot change them.

    Args:
        runner: The runner with the optimizer wrapper.
        optimizers: The optimizers in the wrapper.
    """

    def __init__(self, runner: Runner, optimizers: list[torch.optim.Optimizer]) -> None:
        # The loop calls these two; everything else of an update is switched off below.
        super().__init__("", self._step, self._loss, optimizers)
        self.returns_loss = True
        self._runner = runner

    @property
    def keeps_gradients(self) -> bool:
        """Whether gradients may wait for a later step; a custom wrapper may always do so."""
        return getattr(self._runner.optim_wrapper, "_accumulative_counts", 0) != 1

    def _step(self, run: Run) -> object:
        if run.phase == "train":
            return run.model.train_step(run.batch, optim_wrapper=self._runner.optim_wrapper)  # type: ignore[operator]
        step = run.model.val_step if run.phase == "val" else run.model.test_step
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

    def __init__(self, runner: Runner, evaluator: Evaluator, size: int) -> None:
        self._runner = runner
        self._evaluator = evaluator
        self._size = size

    def update(self, output: object, targets: object, /) -> None:
        """Pass one batch to the evaluator."""
        samples = output if isinstance(output, list | tuple) else [output]
        self._evaluator.process(data_samples=samples, data_batch=self._runner.run.batch)

    def compute(self) -> object:
        """Return the metrics that are numbers; MMEngine's hooks get all of them."""
        metrics = self._evaluator.evaluate(self._size)
        self._runner.raw_metrics = metrics
        return {
            name: number
            for name, value in metrics.items()
            if (number := _as_number(value)) is not None
        }

    def reset(self) -> None:
        """Do nothing: `compute` has emptied the evaluator."""


def _as_number(value: object) -> float | None:
    if isinstance(value, bool | int | float):
        return float(value)
    if getattr(value, "size", None) is not None and callable(getattr(value, "item", None)):
        count = value.numel() if isinstance(value, Tensor) else value.size  # type: ignore[attr-defined]
        return float(value.item()) if count == 1 else None  # type: ignore[attr-defined]
    return None
