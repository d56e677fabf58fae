"""Gradients that wait for an update, which are state if an update spans several iterations.

After an ordinary iteration no gradient matters any more, because the optimizer's step has used it.
So each gradient is marked when a step uses it. A gradient that is new, or that was added to since
then, is saved. Of a used one only its existence is saved. It is restored as zeros: a loop that
clears its gradients cannot rely on more than that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import cast

import torch
from torch import Tensor
from torch.optim import Optimizer

from hookloop.errors import CheckpointError

# An attribute of a gradient: its version when a step used it. torch increments the version at each
# change in place, so an equal version means that nothing was added since.
_USED = "_hookloop_used_at"


@contextmanager
def marking_used_gradients(optimizers: Mapping[str, Optimizer]) -> Iterator[None]:
    """Mark gradients when their optimizer steps."""
    with ExitStack() as handles:
        for optimizer in set(optimizers.values()):
            handles.callback(optimizer.register_step_post_hook(_mark_used).remove)
        yield


def pending_gradients(optimizers: Mapping[str, Optimizer]) -> dict[str, object]:
    """Return the gradients by optimizer and index; None for one that a step has used."""
    return {
        name: {
            index: None if _is_used(grad) else _to_state(grad)
            for index, parameter in enumerate(_parameters(optimizer))
            # A used one would come back as dense zeros, which cannot be added to a sparse one.
            if (grad := parameter.grad) is not None and not (grad.is_sparse and _is_used(grad))
        }
        for name, optimizer in optimizers.items()
    }


def restore_gradients(optimizers: Mapping[str, Optimizer], state: object, label: str) -> None:
    """Give parameters back the gradients that waited for an update.

    Raises:
        CheckpointError: If they are not those of these parameters.
    """
    for name, grads in (state if isinstance(state, Mapping) else {}).items():
        parameters = _parameters(optimizers[name]) if name in optimizers else []
        for index, grad in (grads if isinstance(grads, Mapping) else {}).items():
            if not isinstance(index, int) or not 0 <= index < len(parameters):
                raise CheckpointError(
                    f"'{label}' has a gradient with the index {index!r} for the optimizer "
                    f"'{name}', which has {len(parameters)} parameters."
                )
            _restore(parameters[index], grad, f"'{label}': gradient {index} of '{name}'")


def _restore(parameter: Tensor, grad: object, where: str) -> None:
    if grad is None:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        return
    if isinstance(grad, Mapping):
        try:
            grad = torch.sparse_coo_tensor(
                cast("Tensor", grad["indices"]),
                cast("Tensor", grad["values"]),
                parameter.shape,
                check_invariants=True,
            )
        except (KeyError, RuntimeError, TypeError) as error:
            raise CheckpointError(f"{where} is not a sparse tensor: {error}") from error
    if not isinstance(grad, Tensor) or grad.shape != parameter.shape:
        found = tuple(grad.shape) if isinstance(grad, Tensor) else type(grad).__name__
        raise CheckpointError(f"{where} is {found}, its parameter {tuple(parameter.shape)}.")
    # A copy, because the checkpoint may be loaded again, and backward adds to gradients in place.
    parameter.grad = grad.to(parameter.device, parameter.dtype, copy=True)


def _to_state(grad: Tensor) -> object:
    if not grad.is_sparse:
        return grad.detach()
    # Indices and values of a sparse tensor can be read only when they are coalesced.
    grad = grad.coalesce()
    return {"indices": grad.indices(), "values": grad.values()}


def _mark_used(optimizer: Optimizer, args: object, kwargs: object) -> None:
    for parameter in _parameters(optimizer):
        if parameter.grad is not None:
            setattr(parameter.grad, _USED, parameter.grad._version)


def _is_used(grad: Tensor) -> bool:
    return getattr(grad, _USED, None) == grad._version


def _parameters(optimizer: Optimizer) -> list[Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]
