"""Parts of the task in VISSL's form: last batch, optimizer, meters."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from hookloop.core.update import output_of, targets_of
from hookloop.data.batch import is_pair
from hookloop.errors import HookError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from hookloop.core.run import Run


class LastBatch:
    """The current batch; a ``model_output`` or ``loss`` that a hook sets takes effect."""

    def __init__(self, run: Run) -> None:
        self._run = run

    @property
    def sample(self) -> object:
        """The batch if it is a mapping, or ``input`` and ``target`` of a pair."""
        batch = self._run.batch
        if is_pair(batch):
            pair = cast("tuple[object, object]", batch)
            return {"input": pair[0], "target": pair[1]}
        return batch

    @property
    def model_output(self) -> object:
        """The model's output."""
        return output_of(self._run.output)

    @model_output.setter
    def model_output(self, value: object) -> None:
        whole = self._run.output
        # A step may return a mapping with the output among other values, which are kept.
        if isinstance(whole, Mapping) and "output" in whole:
            self._run.output = {**whole, "output": value}
        else:
            self._run.output = value

    output = model_output  # ClassyVision's name of it.

    @property
    def loss(self) -> Tensor | None:
        """The loss."""
        return self._run.loss

    @loss.setter
    def loss(self, value: Tensor) -> None:
        self._run.loss = value

    @property
    def target(self) -> object:
        """The targets of the batch."""
        batch = self._run.batch
        if isinstance(batch, Mapping) and "target" in batch:
            return batch["target"]
        return targets_of(batch)

    @property
    def step_data(self) -> dict[str, object]:
        """Empty, because times are in the metric store."""
        return {}


class OptimizerView:
    """The optimizer with ``options_view``; everything else is torch's own."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer

    @property
    def options_view(self) -> SimpleNamespace:
        """The options of the first parameter group, such as ``lr`` and ``weight_decay``."""
        first = self.optimizer.param_groups[0]
        return SimpleNamespace(**{name: value for name, value in first.items() if name != "params"})

    def step(self, *args: object, **kwargs: object) -> None:
        """Reject the call, because the loop makes the update."""
        raise HookError(
            "A hook called task.optimizer.step, but the loop makes the update. Change gradients in "
            "on_backward instead."
        )

    def __getattr__(self, name: str) -> object:
        return getattr(self.optimizer, name)


class Meter:
    """A metric in the form of a meter: ``name`` and ``value``."""

    # A meter may hold several values, so hooks iterate over a dict.

    def __init__(self, name: str, value: float) -> None:
        self.name = name
        self.value = {name: value}
