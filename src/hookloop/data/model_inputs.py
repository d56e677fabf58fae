"""What a model gets of a batch, where no step says so: to predict, or to be traced."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from hookloop.data.description import describe
from hookloop.errors import DataError

if TYPE_CHECKING:
    from torch import nn

Inputs = tuple[tuple[object, ...], Mapping[str, object]]
"""What a model is called with: by position and by name."""


def inputs_for(model: nn.Module, batch: object, *, has_loss: bool) -> Inputs:
    """Return what to call the model with; targets are left out where it can do without.

    Args:
        model: The model.
        batch: Inputs, a pair of inputs and targets, or a mapping.
        has_loss: Whether it is trained with ``loss=``, so that a pair is inputs and targets.
    """
    if isinstance(batch, Mapping):
        return _inputs_in_mapping(model, batch)
    if not isinstance(batch, tuple | list) or len(batch) == 1:
        only = batch[0] if isinstance(batch, tuple | list) else batch
        if not _takes(model, (only,), {}):
            raise _unknown_inputs(model, batch)
        return (only,), {}
    if has_loss and len(batch) == 2:
        return (batch[0],), {}
    # The targets of a pair are left out if possible. Of more parts the model gets as many as it
    # takes.
    counts = (1, 2) if len(batch) == 2 else range(len(batch), 0, -1)
    for count in () if has_loss else counts:
        if _takes(model, batch[:count], {}):
            return tuple(batch[:count]), {}
    if has_loss:
        return (batch,), {}
    raise _unknown_inputs(model, batch)


def _inputs_in_mapping(model: nn.Module, batch: Mapping[str, object]) -> Inputs:
    if _takes(model, (), batch):
        return (), batch
    if "input" in batch:
        return (batch["input"],), {}
    names = inspect.signature(model.forward).parameters
    known = {name: value for name, value in batch.items() if name in names}
    if known and _takes(model, (), known):
        return (), known
    if _takes(model, (batch,), {}):
        return (batch,), {}
    raise _unknown_inputs(model, batch)


def _takes(model: nn.Module, args: object, named: Mapping[str, object]) -> bool:
    try:
        inspect.signature(model.forward).bind(*cast("tuple[object, ...]", args), **named)
    except TypeError:
        return False
    except ValueError:  # It does not tell what it takes, as a scripted module.
        return True
    return True


def _unknown_inputs(model: nn.Module, batch: object) -> DataError:
    return DataError(
        f"{type(model).__name__}.forward{inspect.signature(model.forward)} cannot be called with "
        f"the parts of a batch, which is {describe(batch)}: give batches of inputs alone, or "
        "predict(..., step=function), which gets the run and the batch and returns the output."
    )
