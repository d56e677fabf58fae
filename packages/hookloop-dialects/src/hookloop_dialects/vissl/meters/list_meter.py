"""`ListMeter`: one meter for each output of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from torch import Tensor

from hookloop_dialects.vissl.classy_vision.meters.classy_meter import ClassyMeter
from hookloop_dialects.vissl.classy_vision.meters.top_k_meter import (
    AccuracyMeter,
    PrecisionAtKMeter,
    RecallAtKMeter,
    TopKMeter,
)


class ListMeter(ClassyMeter):
    """Measure each output of a model, in percent.

    Args:
        num_meters: How many outputs the model has.
        topk_values: The values of k.
        meter_names: Names of the outputs; without them their numbers.

    Attributes:
        kind: The meter of one output.
        title: The meter's name.
    """

    kind: ClassVar[type[TopKMeter]]
    title: ClassVar[str] = ""

    def __init__(
        self, num_meters: int, topk_values: Sequence[int], meter_names: Sequence[str] = ()
    ) -> None:
        if num_meters < 1:
            raise ValueError(f"num_meters must be at least 1, not {num_meters}.")
        self._meters = [self.kind(topk_values) for _ in range(num_meters)]
        self._names: list[str | int] = [*meter_names] or [*range(num_meters)]

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Make the meter from ``num_meters``, ``topk_values`` and ``meter_names``."""
        return cls(config["num_meters"], config["topk_values"], config.get("meter_names", ()))

    @property
    def name(self) -> str:
        """The name in logs and files."""
        return self.title

    @property
    def value(self) -> dict[str, dict[Any, Any]]:
        """Percent by k and output: ``{"top_1": {"res5": 71.5}}``; a list for equal names."""
        found: dict[str, dict[Any, Any]] = {}
        for output, meter in zip(self._names, self._meters, strict=True):
            for k, share in meter.value.items():
                found.setdefault(k, {}).setdefault(output, []).append(100.0 * round(share, 6))
        return {
            k: {one: got[0] if len(got) == 1 else got for one, got in outputs.items()}
            for k, outputs in found.items()
        }

    def update(self, model_output: Any, target: Any, **kwargs: Any) -> None:  # noqa: ANN401 - tensors
        """Add one batch: a tensor of scores, or one for each output."""
        outputs = [model_output] if isinstance(model_output, Tensor) else list(model_output)
        if len(outputs) != len(self._meters):
            raise ValueError(
                f"{self.name}: num_meters is {len(self._meters)}, the model has {len(outputs)} "
                "outputs."
            )
        for meter, output in zip(self._meters, outputs, strict=True):
            meter.update(output, target)

    def reset(self) -> None:
        """Forget all batches."""
        for meter in self._meters:
            meter.reset()

    def sync_state(self) -> None:
        """Combine the counts of all processes."""
        for meter in self._meters:
            meter.sync_state()

    def get_classy_state(self) -> dict[str, Any]:
        """Return the state of each output's meter."""
        return {"meters": [meter.get_classy_state() for meter in self._meters]}

    def set_classy_state(self, state: Mapping[str, Any]) -> None:
        """Restore the state."""
        for meter, saved in zip(self._meters, state["meters"], strict=True):
            meter.set_classy_state(saved)


class AccuracyListMeter(ListMeter):
    """The accuracy of each output, in percent."""

    kind = AccuracyMeter
    title = "accuracy_list_meter"


class PrecisionAtKListMeter(ListMeter):
    """The precision of each output, in percent."""

    kind = PrecisionAtKMeter
    title = "precision_at_k_list_meter"


class RecallAtKListMeter(ListMeter):
    """The recall of each output, in percent."""

    kind = RecallAtKMeter
    title = "recall_at_k_list_meter"
