"""`BatchData`: one batch as emloop's hooks see it: inputs and outputs in one dict of sequences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor

from hookloop.data.batch import is_pair, size_of
from hookloop.data.microbatches import is_scalar
from hookloop.errors import HookError

if TYPE_CHECKING:
    from numpy.typing import NDArray


class BatchData(dict[str, object]):
    """The batch merged with the output; a tensor becomes a NumPy array when it is first read.

    A batch of (inputs, targets) has the variables ``inputs`` and ``targets``, an output that is no
    mapping is ``output``, and the loss is ``loss``. A number that stands for the whole batch is
    repeated for each example, since emloop's variables have one entry per example; so the mean over
    an epoch weighs every example alike.
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
        """Merge the output and the loss of a turn into the batch that they were computed from."""
        if type(output) is Tensor:  # The common case, without a look at its ancestors.
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
                f"The batch and the output both have {', '.join(overlap)}: for emloop's hooks they "
                "go into one dict, so rename the one or the other."
            )
        self._outputs |= {*output, "loss"}  # A later turn may have the same.
        self.update(output)

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


def merge(computed: Iterable[tuple[object, object, Tensor | None]]) -> list[BatchData]:
    """Make the data of each batch; several turns over one batch go into one."""
    found: list[BatchData] = []
    for batch, output, loss in computed:
        if not found or not found[-1].is_of(batch):
            found.append(BatchData(batch))
        found[-1].add(output, loss)
    return found


def _to_array(value: Tensor | float, batch: object) -> NDArray[Any]:
    if isinstance(value, Tensor):
        tensor = value.detach().cpu()
        array = tensor.float().numpy() if tensor.dtype == torch.bfloat16 else tensor.numpy()
    else:
        array = np.asarray(value)
    return array if array.ndim else np.full(size_of(batch), array)
