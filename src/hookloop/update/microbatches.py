"""The microbatches of one update, each with its proper weight.

The gradient of a whole batch is the mean of the gradients of its microbatches, weighted by their
samples, or by what a step returns as ``"weight"``. All weights are known only after the last
backward pass. So each loss is divided by the expected sum of the weights, and the gradients are
corrected once if the sum turns out differently.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import inf
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from hookloop.data.batch import is_scalar, size_of
from hookloop.errors import ModelError
from hookloop.metrics.weighted import Weight, WeightedMean, zero_if_uncounted

if TYPE_CHECKING:
    from hookloop.engine.run import Run
    from hookloop.update.update import Update


class Microbatches:
    """The microbatches of one update in one process.

    Args:
        update: What they are the microbatches of.
        batches: All of them, as they are computed.
    """

    def __init__(self, update: Update, batches: Sequence[object]) -> None:
        self.compute = update.computation
        self._update = update
        self._batches = batches
        self._expected: Weight | None = None
        self._counted = False
        self._total: Weight = 0.0
        self._loss = WeightedMean()
        self._numbers: dict[str, WeightedMean] = {}

    def __iter__(self) -> Iterator[object]:
        """Yield them."""
        return iter(self._batches)

    def weigh(self, run: Run, loss: Tensor | None) -> Tensor | None:
        """Return what the loss of a microbatch adds to that of the whole batch."""
        if loss is None:
            return None
        update = self._update
        update.begin(run, loss)
        counted, output = update.weight(run), run.output
        if update.sums:
            self._expected, self._total = 1.0, self._total + 1
            self._loss.add(loss, 1.0)
            return loss
        weight = float(size_of(run.batch)) if counted is None else counted
        self._loss.add(loss, weight)
        loss = loss if counted is None else zero_if_uncounted(loss, counted)
        if isinstance(output, Mapping):
            for name, value in output.items():
                if is_scalar(value):
                    self._numbers.setdefault(name, WeightedMean()).add(
                        value if isinstance(value, Tensor) else float(value), weight
                    )
        return loss / self._divisor(run, weight, counted is not None)

    def backward(self, loss: Tensor | None) -> None:
        """Add the gradients of a weighted loss."""
        if loss is not None:
            self._update.backward(loss)

    def close(self, run: Run) -> bool:
        """Make gradients, loss and other numbers those of the whole batch, and record them."""
        if self._expected is None:  # The step returned a loss for none of them.
            return False
        self._correct()
        # The numbers of the whole batch are recorded, but hooks go on to see the last microbatch.
        last = run.output
        if isinstance(last, Mapping):
            run.output = {**last, **{name: mean.mean() for name, mean in self._numbers.items()}}
        mean = torch.as_tensor(self._loss.mean())
        run.loss = mean * self._total if self._update.sums else mean
        self._update.record(run, run.loss)
        run.output = last
        return True

    def _correct(self) -> None:
        """Divide the gradients by the ratio of the real to the expected weight, if it is not 1."""
        ratio = self._total / (1.0 if self._expected is None else self._expected)
        # A weight on the device is not compared with 1 in Python, which would wait for the device.
        if isinstance(ratio, Tensor):
            ratio = torch.where(ratio == 0, 1.0, ratio)
        elif self._update.sums or ratio in (0.0, 1.0):
            return
        for parameter in set(self._update.parameters()):
            if parameter.grad is not None:
                parameter.grad.div_(ratio)

    def _divisor(self, run: Run, weight: Weight, counted: bool) -> Weight:
        if self._expected is None:
            self._expected, self._counted = self._expect(run, weight, counted), counted
        elif counted != self._counted:
            raise ModelError(
                "A 'weight' was returned for some microbatches of an iteration and not for others: "
                "return it for all of them, or for none to weight them by their samples."
            )
        self._total = self._total + weight
        return self._expected / weight if isinstance(weight, Tensor) or weight else inf

    def _expect(self, run: Run, weight: Weight, counted: bool) -> Weight:
        if not counted:
            if len(self._batches) == 1 and self._batches[0] is run.batch:
                return weight or 1.0
            # Of a copy: going over those of several streams tells hooks which is current.
            return float(sum(map(size_of, self._batches[:])) or 1)
        # The first weight stands for all: close enough to the sum that half precision neither
        # overflows nor underflows.
        first = torch.where(weight == 0, 1.0, weight) if isinstance(weight, Tensor) else weight or 1
        return first * len(self._batches)


def is_sum(loss: object) -> bool:
    """Return whether a loss function has ``reduction="sum"``."""
    if isinstance(loss, partial):
        return loss.keywords.get("reduction") == "sum" or is_sum(loss.func)
    return getattr(loss, "reduction", None) == "sum"


def weight_in(output: object) -> Weight | None:
    """Return the weight of a batch in the output of a step, or None."""
    if isinstance(output, Mapping) and "weight" in output:
        return check_weight(output["weight"])
    return None


def check_weight(weight: object) -> Weight:
    """Return a weight as a number or a scalar tensor; reject anything else."""
    # The value of a tensor is not checked, because reading it would wait for the device.
    if isinstance(weight, Tensor) and weight.numel() == 1:
        return weight.detach().reshape(())
    if not is_scalar(weight) or isinstance(weight, Tensor) or not 0 <= weight < inf:
        shown = f"a tensor of shape {tuple(weight.shape)}" if isinstance(weight, Tensor) else weight
        raise ModelError(
            f"The 'weight' returned with the loss is {shown}: it must be one number, such as how "
            "many tokens or pixels the loss is a mean of. Use another name for anything else."
        )
    return float(weight)


def loss_or_zero(loss: Tensor, weight: object) -> Tensor:
    """Return the loss, or 0 if its weight is 0: a mean over nothing is NaN."""
    checked = check_weight(weight)
    if isinstance(checked, Tensor):
        return torch.where(checked == 0, 0.0, loss)
    return loss if checked else torch.zeros_like(loss, requires_grad=True)


def check_loss(loss: object, loss_name: str) -> None:
    """Reject, at the first iteration, a loss that cannot be trained on."""
    if not isinstance(loss, Tensor):
        is_number = is_scalar(loss)
        hint = " A number has no gradient: leave out .item() or float()." if is_number else ""
        raise ModelError(
            f"The {loss_name} is {type(loss).__name__}: it must be a scalar tensor.{hint}"
        )
    if loss.ndim:
        raise ModelError(
            f"The {loss_name} has the shape {tuple(loss.shape)}: it must be a scalar. Reduce it, "
            "for example with .mean(), or reduction='mean' in the loss."
        )
    if not loss.requires_grad:  # torch's own error, in backward, does not name the cause.
        if not torch.is_grad_enabled():
            raise ModelError(
                f"The {loss_name} has no gradient, because the training runs within "
                "torch.no_grad() or inference_mode(), or a step leaves gradients switched off."
            )
        raise ModelError(
            f"The {loss_name} depends on no trainable parameter: it was detached, or computed "
            "from something other than the model's output."
        )
