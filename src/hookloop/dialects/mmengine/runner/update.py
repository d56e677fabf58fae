"""The work of an iteration as MMEngine's models do it: the model makes the update itself."""

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
    """Calls ``train_step``, ``val_step`` and ``test_step`` of the model.

    Backward, clipping, accumulation and the update have taken place when ``train_step`` returns, so
    a native hook at ``after_loss``, ``after_backward`` or ``before_update`` comes too late to
    change them.

    Args:
        runner: Whose optimizer wrapper is used.
        optimizers: Those behind it.
    """

    def __init__(self, runner: Runner, optimizers: list[torch.optim.Optimizer]) -> None:
        super().__init__("", self._step, self._loss, optimizers)
        self.returns_loss = True
        self._runner = runner

    @property
    def keeps_gradients(self) -> bool:
        """Whether a step may take several losses; a wrapper of another kind does as it likes."""
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
        """Nothing: the optimizer wrapper does this after each step."""

    def record(self, run: Run, loss: Tensor) -> None:
        for name, value in cast("Mapping[str, object]", run.output).items():
            if is_scalar(value):
                run.metrics.put(f"train/{name}", value)

    def backward(self, loss: Tensor) -> None:
        """Nothing: it is done."""

    def unscale(self) -> None:
        """Nothing: it is done."""

    def apply(self, run: Run) -> None:
        """Nothing: it is done."""


class EvaluatorMetric:
    """An evaluator among the metrics of an evaluation; its own keys are the names.

    Args:
        runner: Keeps what the evaluator returns, as it is.
        evaluator: The evaluator.
        size: Samples of the data.
    """

    def __init__(self, runner: Runner, evaluator: Evaluator, size: int) -> None:
        self._runner = runner
        self._evaluator = evaluator
        self._size = size

    def update(self, output: object, targets: object, /) -> None:
        """Take one batch."""
        samples = output if isinstance(output, list | tuple) else [output]
        self._evaluator.process(data_samples=samples, data_batch=self._runner.run.batch)

    def compute(self) -> object:
        """Return the numbers among the metrics; hooks of MMEngine get all of them."""
        metrics = self._evaluator.evaluate(self._size)
        self._runner.raw_metrics = metrics
        return {
            name: number
            for name, value in metrics.items()
            if (number := _number(value)) is not None
        }

    def reset(self) -> None:
        """Nothing: evaluating has done it."""


def _number(value: object) -> float | None:
    if isinstance(value, bool | int | float):
        return float(value)
    if getattr(value, "size", None) is not None and callable(getattr(value, "item", None)):
        count = value.numel() if isinstance(value, Tensor) else value.size  # type: ignore[attr-defined]
        return float(value.item()) if count == 1 else None  # type: ignore[attr-defined]
    return None
