"""`AccumulateVariables`: the base of hooks that need all batches of an epoch at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from hookloop.errors import nearest
from hookloop_dialects.emloop.hooks.abstract_hook import AbstractHook
from hookloop_dialects.emloop.types import Batch

Accumulated = defaultdict[str, defaultdict[str, list[Any]]]


class AccumulateVariables(AbstractHook):
    """Collect variables in ``self._accumulator[stream][variable]`` until the epoch is over.

    The values of an unfinished epoch survive a resume; in emloop they do not.

    Args:
        variables: Names; each must be in every batch.
        kwargs: See `AbstractHook`.
    """

    def __init__(self, variables: Iterable[str], **kwargs: object) -> None:
        super().__init__(**kwargs)
        self._variables = variables
        self._reset_accumulator()

    # A method of emloop's class, which subclasses call.
    def _reset_accumulator(self) -> None:
        self._accumulator: Accumulated = defaultdict(lambda: defaultdict(list))

    def after_batch(self, stream_name: str, batch_data: Batch) -> None:
        for name in self._variables:
            value = variable(batch_data, name, stream_name)
            # A number is repeated per example before it gets here; other objects are not.
            if not hasattr(value, "__iter__"):
                raise TypeError(f"'{name}' of the stream '{stream_name}' has no entry per example.")
            self._accumulator[stream_name][name] += list(value)

    def after_epoch(self, *_: Any, **kwargs: Any) -> None:  # noqa: ANN401 - open, as the base
        self._reset_accumulator()

    def state_dict(self) -> dict[str, object]:
        return {
            stream: {name: _to_state(kept) for name, kept in values.items()}
            for stream, values in self._accumulator.items()
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        self._reset_accumulator()
        for stream, values in state.items():
            for name, kept in cast("Mapping[str, Tensor | list[object]]", values).items():
                self._accumulator[stream][name] = list(_from_state(kept))


def _to_state(kept: list[Any]) -> Tensor | list[Any]:
    """Convert values to what a checkpoint can hold."""
    try:
        array = np.asarray(kept)
    except ValueError:  # The entries have different shapes.
        return [_to_state(list(values)) for values in kept]
    # As tensors, numbers keep their precision: a resumed mean has the same bits. A tensor cannot
    # hold text or objects.
    return torch.from_numpy(array) if array.dtype.kind in "biuf" else array.tolist()


def _from_state(kept: Any) -> Any:  # noqa: ANN401 - what `_to_state` made
    if isinstance(kept, list):
        return [_from_state(value) for value in kept]
    return kept.numpy() if isinstance(kept, Tensor) else kept


def variable(batch_data: Batch, name: str, stream: str) -> Any:  # noqa: ANN401 - the user's own
    """Return a variable; the `KeyError` for a missing one lists those that exist."""
    if name not in batch_data:
        raise KeyError(
            f"there is no '{name}' in the batches of the stream '{stream}'."
            f"{nearest(name, batch_data)} Available: {', '.join(batch_data)}."
        )
    return batch_data[name]
