"""`BatchData`: one batch as emloop's hooks see it: inputs and outputs in one dict of sequences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor

from hookloop.core.turn import is_scalar
from hookloop.data.batch import is_pair, size_of
from hookloop.errors import HookError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hookloop.core.run import Run


class BatchData(dict[str, object]):
    """The batch merged with the output; a tensor becomes a NumPy array when it is first read.

    A batch of (inputs, targets) has the variables ``inputs`` and ``targets``, an output that is no
    mapping is ``output``, and the loss is ``loss``. A number that stands for the whole batch is
    repeated for each example, since emloop's variables have one entry per example; so the mean over
    an epoch weighs every example alike.
    """

    def __init__(self, run: Run) -> None:
        inputs = _named(run.batch)
        super().__init__(inputs)
        self._batch = run.batch
        self.add_output(run, inputs)

    def add_output(self, run: Run, inputs: Mapping[str, object] | None = None) -> None:
        """Merge the output and the loss of a turn into the batch that it was computed from."""
        output = run.output
        outputs = dict(output) if isinstance(output, Mapping) else {}
        if not outputs and output is not run.loss and output is not None:
            outputs["output"] = output
        if run.loss is not None:
            outputs["loss"] = run.loss
        overlap = [name for name in outputs if inputs is not None and name in inputs]
        if overlap:
            raise HookError(
                f"The batch and the output both have {', '.join(overlap)}: for emloop's hooks they "
                "go into one dict, so rename the one or the other."
            )
        self.update(cast("dict[str, object]", outputs))

    def is_of(self, batch: object) -> bool:
        """Tell whether it was made from this very batch."""
        return self._batch is batch

    def __getitem__(self, name: str) -> object:
        value = super().__getitem__(name)
        if isinstance(value, Tensor) or is_scalar(value):
            value = _to_array(value, self._batch)
            self[name] = value
        return value

    def __iter__(self) -> Iterator[str]:  # Without it, {**data} would not go through __getitem__.
        return super().__iter__()

    def get(self, name: str, default: object = None) -> object:
        """Return a variable, or the default."""
        return self[name] if name in self else default  # noqa: SIM401 - it would call itself

    def items(self) -> list[tuple[str, object]]:  # type: ignore[override]
        """Return the variables with their values, read."""
        return [(name, self[name]) for name in self]

    def values(self) -> list[object]:  # type: ignore[override]
        """Return the values, read."""
        return [self[name] for name in self]


def _named(batch: object) -> Mapping[str, object]:
    if isinstance(batch, Mapping):
        return {str(name): value for name, value in batch.items()}
    if is_pair(batch):
        pair = cast("tuple[object, object]", batch)
        return {"inputs": pair[0], "targets": pair[1]}
    return {"inputs": batch}


def _to_array(value: Tensor | float, batch: object) -> NDArray[Any]:
    if isinstance(value, Tensor):
        tensor = value.detach().cpu()
        array = tensor.float().numpy() if tensor.dtype == torch.bfloat16 else tensor.numpy()
    else:
        array = np.asarray(value)
    return array if array.ndim else np.full(size_of(batch), array)
