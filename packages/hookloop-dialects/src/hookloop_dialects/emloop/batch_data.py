"""`BatchData`: a batch as emloop's hooks see it, with inputs and outputs in one dict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor

from hookloop.dialects import is_pair, is_scalar, size_of
from hookloop.errors import HookError

if TYPE_CHECKING:
    from numpy.typing import NDArray


class BatchData(dict[str, object]):
    """The batch merged with the output; a tensor becomes a NumPy array when it is first read.

    A batch of (inputs, targets) has the variables ``inputs`` and ``targets``. An output that is
    not a mapping is ``output``, and the loss is ``loss``. A single number for the whole batch is
    repeated for each example, because emloop's variables have one entry per example. So the mean
    over an epoch gives every example the same weight.
    """

    def __init__(self, batch: object) -> None:
        if is_pair(batch):
            pair = cast("tuple[object, object]", batch)
            super().__init__(inputs=pair[0], targets=pair[1])
        elif isinstance(batch, Mapping):
            super().__init__(batch)
        else:
            super().__init__(inputs=batch)
        self._batch = batch
        self._outputs: set[str] = set()

    def add(self, output: object, loss: Tensor | None) -> None:
        """Add the output and the loss that a step computed from the batch."""
        # The common case first. An isinstance check against Mapping is slow, since it is abstract.
        if type(output) is Tensor:
            if output is not loss:
                self["output"] = output
        elif isinstance(output, Mapping):
            self._add_all(output)
        elif output is not None:
            self["output"] = output
        if loss is not None:
            self["loss"] = loss

    def _add_all(self, output: Mapping[str, object]) -> None:
        overlap = [name for name in output if name in self and name not in self._outputs]
        if overlap:
            raise HookError(
                f"The batch and the output both have {', '.join(overlap)}: emloop's hooks get them "
                "in one dict, so rename one of the two."
            )
        # With several optimizers each step has an output for the same batch; names may repeat.
        self._outputs |= {*output, "loss"}
        self.update(output)

    def is_of(self, batch: object) -> bool:
        """Return whether it was made from this batch object."""
        return self._batch is batch

    def __getitem__(self, name: str) -> object:
        value = super().__getitem__(name)
        if isinstance(value, Tensor) or is_scalar(value):
            value = _to_array(value, self._batch)
            self[name] = value  # Kept, so that the next hook does not wait for the device again.
        return value

    # With a plain dict's __iter__, CPython copies {**data} without calling __getitem__.
    def __iter__(self) -> Iterator[str]:
        return super().__iter__()

    def get(self, name: str, default: object = None) -> object:
        """Return a variable, or the default."""
        return self[name] if name in self else default  # noqa: SIM401 - it would call itself

    def items(self) -> list[tuple[str, object]]:  # type: ignore[override]
        """Return the variables and their values as arrays."""
        return [(name, self[name]) for name in self]

    def values(self) -> list[object]:  # type: ignore[override]
        """Return the values as arrays."""
        return [self[name] for name in self]


def merge(computed: Iterable[tuple[object, object, Tensor | None]]) -> list[BatchData]:
    """Return the data of each batch; consecutive steps on one batch are merged."""
    found: list[BatchData] = []
    for batch, output, loss in computed:
        if not found or not found[-1].is_of(batch):
            found.append(BatchData(batch))
        found[-1].add(output, loss)
    return found


def _to_array(value: Tensor | float, batch: object) -> NDArray[Any]:
    if isinstance(value, Tensor):
        tensor = value.detach().cpu()
        # NumPy has no bfloat16.
        array = tensor.float().numpy() if tensor.dtype == torch.bfloat16 else tensor.numpy()
    else:
        array = np.asarray(value)
    return array if array.ndim else np.full(size_of(batch), array)
