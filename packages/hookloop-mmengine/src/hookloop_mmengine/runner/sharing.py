"""The update of a model that makes its steps itself, together with other processes.

A model of MMEngine calls backward and the step of its optimizer in ``train_step``, where no engine
can come in between. But it does so through its optimizer wrapper. So each wrapper gets a
`SharedGradients`, which hands the loss to torch's DDP just before backward.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from hookloop.dialects import Replica, is_scalar, place_of
from hookloop.errors import ModelError
from hookloop_mmengine.dist import all_reduce

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from hookloop import Run


class SharedGradients:
    """Average the gradients of one optimizer over all processes.

    Args:
        run: The run.
        optimizer: The optimizer.
        finds_unused: Whether parameters may be left out of a loss.
    """

    def __init__(self, run: Run, optimizer: Optimizer, *, finds_unused: bool) -> None:
        self._run = run
        self._optimizer = optimizer
        self._is_joined = False
        self._replica = Replica(run.model, self._parameters, finds_unused=finds_unused)
        self._handle = optimizer.register_step_pre_hook(self._before_step)

    def _parameters(self) -> list[Tensor]:
        return [one for group in self._optimizer.param_groups for one in group["params"]]

    def join(self, loss: Tensor) -> Tensor:
        """Return a loss whose backward averages the gradients, also those that wait for a step.

        The loss counts for this process's part of the global batch.
        """
        replica = self._replica
        replica.clear()
        # Always, also before the last loss of a step: what waits is then the same everywhere, and
        # the checkpoint of the first process is that of all.
        replica.start(synchronizes=True)
        joined = replica.forward(lambda _: loss, self._run)
        self._is_joined = True
        return replica.averaged_loss(joined, factor_of(self._run), ())

    def complete(self) -> None:
        """Average gradients that a model has computed without its wrapper, before a step."""
        if not self._is_joined:
            self._average()
            self._is_joined = True

    def close(self) -> None:
        """Leave the optimizer alone."""
        self._handle.remove()

    def _before_step(self, *_: object) -> None:
        self.complete()  # A wrapper of a project's own may not have called it.
        self._is_joined = False
        self._check_complete()

    def _check_complete(self) -> None:
        try:
            self._replica.check_complete()
        except ModelError as error:
            raise ModelError(
                "The loss does not depend on all parameters of the optimizer, so the processes "
                "cannot average all gradients. Write find_unused_parameters=True in the config, "
                "as for MMEngine."
            ) from error

    def _average(self) -> None:
        parameters = self._parameters()
        has = torch.tensor([float(one.grad is not None) for one in parameters])
        all_reduce(has, "max")
        factor = factor_of(self._run)
        for parameter, is_used in zip(parameters, has.tolist(), strict=True):
            if is_used:
                # Another process has a gradient for it.
                own = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
                parameter.grad = own.mul_(factor)
                all_reduce(parameter.grad, "mean")


class SharedNumbers:
    """The numbers that ``train_step`` returns, as means over the global batch."""

    def __init__(self) -> None:
        self._names: list[str] | None = None

    def of_all(self, run: Run, output: Mapping[str, object]) -> dict[str, object]:
        """Return an output whose numbers are equal on all processes."""
        own = {name: value for name, value in output.items() if is_scalar(value)}
        if self._names is None:
            # Agreed on once: a loss may be missing in a process, such as that of masks.
            self._names = sorted(set().union(*run.gather(list(own))))
        weight = place_of(run).own
        zero = torch.zeros((), dtype=torch.float64, device=run.device)
        sums = [
            torch.as_tensor(own[name], device=run.device).detach().double().reshape(()) * weight
            if name in own
            else zero
            for name in self._names
        ]
        weights = [zero + weight if name in own else zero for name in self._names]
        both = torch.stack([*sums, *weights]) if sums else zero[None]
        all_reduce(both)
        totals = dict(zip(self._names, zip(*both.chunk(2), strict=True), strict=True))
        means: dict[str, object] = {}
        for name, value in own.items():
            if name in totals:
                total, count = totals[name]
                kind = value.dtype if isinstance(value, Tensor) else torch.float32
                means[name] = (total / count).to(kind if kind.is_floating_point else torch.float32)
        return {**output, **means}


def factor_of(run: Run) -> float:
    """Return what the loss of this process is multiplied with, before it is averaged."""
    place = place_of(run)
    return 1.0 if place.total is None else place.own * run.world.size / place.total
