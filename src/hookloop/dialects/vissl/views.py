"""Parts of the task as VISSL's hooks know them: last batch, optimizer, meters."""

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
    """The batch at hand; what a hook puts into ``model_output`` or ``loss`` takes effect."""

    def __init__(self, run: Run) -> None:
        self._run = run

    @property
    def sample(self) -> object:
        """The batch: its mapping, or ``input`` and ``target`` of a pair."""
        batch = self._run.batch
        if is_pair(batch):
            pair = cast("tuple[object, object]", batch)
            return {"input": pair[0], "target": pair[1]}
        return batch

    @property
    def model_output(self) -> object:
        """What the model returned."""
        return output_of(self._run.output)

    @model_output.setter
    def model_output(self, value: object) -> None:
        whole = self._run.output
        if isinstance(whole, Mapping) and "output" in whole:
            self._run.output = {**whole, "output": value}
        else:
            self._run.output = value

    output = model_output

    @property
    def loss(self) -> Tensor | None:
        """The loss."""
        return self._run.loss

    @loss.setter
    def loss(self, value: Tensor) -> None:
        self._run.loss = value

    @property
    def target(self) -> object:
        """What the output is compared with."""
        batch = self._run.batch
        if isinstance(batch, Mapping) and "target" in batch:
            return batch["target"]
        return targets_of(batch)

    @property
    def step_data(self) -> dict[str, object]:
        """Nothing: times are in the metric store."""
        return {}


class OptimizerView:
    """The optimizer, with ``options_view``; everything else is torch's own."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer

    @property
    def options_view(self) -> SimpleNamespace:
        """Learning rate and weight decay of the first parameter group, and what else it has."""
        first = self.optimizer.param_groups[0]
        return SimpleNamespace(**{name: one for name, one in first.items() if name != "params"})

    def step(self, *args: object, **kwargs: object) -> None:
        """Refuse: the loop steps."""
        raise HookError(
            "A hook called task.optimizer.step: the loop makes the update. Change gradients in "
            "on_backward instead."
        )

    def __getattr__(self, name: str) -> object:
        return getattr(self.optimizer, name)


class Meter:
    """One metric in the form of a meter: ``name`` and ``value``."""

    def __init__(self, name: str, value: float) -> None:
        self.name = name
        self.value = {name: value}
