"""Parts of the task in VISSL's form: last batch, optimizer, meters."""

from __future__ import annotations

from collections.abc import ItemsView, Mapping
from typing import TYPE_CHECKING, Any, cast

from hookloop.dialects import is_pair, output_of
from hookloop.errors import HookError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from hookloop import Run
    from hookloop_dialects.vissl.companion import VisslCompanion


def sample_of(batch: object) -> object:
    """Return a batch in the form of these systems: a pair as ``input`` and ``target``."""
    if not is_pair(batch):
        return batch
    inputs, targets = cast("tuple[object, object]", batch)
    return {"input": inputs, "target": targets}


class LastBatch:
    """The current batch; a ``model_output`` or ``loss`` that a hook sets takes effect.

    Args:
        run: The run.
        companion: Measures how long the batch was waited for.
    """

    def __init__(self, run: Run, companion: VisslCompanion | None = None) -> None:
        self._run = run
        self._companion = companion
        self._batch: object = None
        self._sample: object = None

    @property
    def sample(self) -> Any:  # noqa: ANN401 - the user's batch
        """The batch if it is a mapping, or ``input`` and ``target`` of a pair."""
        batch = self._run.batch
        # One dictionary per batch, so that hooks find what other hooks have added to it.
        if self._batch is not batch:
            self._batch, self._sample = batch, sample_of(batch)
        return self._sample

    @property
    def model_output(self) -> Any:  # noqa: ANN401 - whatever the model returns
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
    def target(self) -> Any:  # noqa: ANN401 - the user's targets
        """The targets of the batch."""
        batch = self._run.batch
        if isinstance(batch, Mapping) and "target" in batch:
            return batch["target"]
        return batch[1] if is_pair(batch) else batch

    @property
    def step_data(self) -> dict[str, object]:
        """``sample_fetch_time``: the seconds that this batch was waited for."""
        if self._companion is None:
            return {}
        return {"sample_fetch_time": self._companion.fetch_time}


class OptionsView:
    """The options of an optimizer's groups by name; a list where the groups differ."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizer = optimizer

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a number, a flag, a pair
        groups = self._optimizer.param_groups
        values: list[object] = []
        for group in groups if name != "params" else ():
            if name in group and group[name] not in values:
                values.append(group[name])
        if not values:
            raise AttributeError(f"no group of the optimizer has '{name}'")
        return values[0] if len(values) == 1 else values


class OptimizerView:
    """The optimizer with ``options_view``; everything else is torch's own."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer

    @property
    def options_view(self) -> OptionsView:
        """The options, such as ``lr`` and ``weight_decay``."""
        return OptionsView(self.optimizer)

    def get_classy_state(self) -> dict[str, object]:
        """Return the optimizer's state in ClassyVision's form."""
        return {"optim": self.optimizer.state_dict()}

    def step(self, *args: object, **kwargs: object) -> None:
        """Reject the call, because the loop makes the update."""
        raise HookError(
            "A hook called task.optimizer.step, but the loop makes the update. Change gradients in "
            "on_backward instead."
        )

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - torch's own attribute
        return getattr(self.optimizer, name)


class MeterValue(float):
    """A number that also has the form of VISSL's meters: one value per output of the model.

    >>> value = MeterValue(0.5)
    >>> value + 0.25, dict(value.items())
    (0.75, {0: 0.5})
    """

    __slots__ = ()

    # ClassyVision's meters have a number per name, VISSL's have {output: number}. A metric of the
    # Trainer may be read by hooks of both.
    def items(self) -> ItemsView[int, float]:
        """Return the number as that of the first output."""
        return {0: float(self)}.items()


class Meter:
    """A metric in the form of a meter: ``name`` and ``value``."""

    # A meter may hold several values, so hooks iterate over a dict.

    def __init__(self, name: str, value: float) -> None:
        self.name = name
        self.value = {name: MeterValue(value)}

    def get_classy_state(self) -> dict[str, object]:
        """Return name and value."""
        return {"name": self.name, "value": {k: float(v) for k, v in self.value.items()}}

    def __repr__(self) -> str:
        return f"{self.name}: {float(self.value[self.name]):.6g}"
