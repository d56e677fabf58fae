"""Gradients that wait for an update: state, where an update is spread over several iterations.

An ordinary iteration leaves none that matter: its gradients were used by the optimizer's step. So
what belongs to a checkpoint is told by the optimizers: each gradient is marked when a step has used
it, and one that was added to since then, or is new, is kept. Of a used one only is kept that it was
there, and it comes back as zeros, which is all that a loop may rely on that clears its gradients.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import cast

import torch
from torch import Tensor
from torch.optim import Optimizer

from hookloop.errors import CheckpointError

_USED = "_hookloop_used_at"  # The version of a gradient's numbers when a step used them.


@contextmanager
def watching_steps(optimizers: Mapping[str, Optimizer]) -> Iterator[None]:
    """Mark gradients when their optimizer steps."""
    with ExitStack() as handles:
        for optimizer in set(optimizers.values()):
            handles.callback(optimizer.register_step_post_hook(_mark_used).remove)
        yield


def waiting_gradients(optimizers: Mapping[str, Optimizer]) -> dict[str, object]:
    """Return the gradients by optimizer and place; None for one that a step has used."""
    return {
        name: {
            place: None if _is_used(grad) else _portable(grad)
            for place, parameter in enumerate(_parameters(optimizer))
            if (grad := parameter.grad) is not None and not (grad.is_sparse and _is_used(grad))
        }
        for name, optimizer in optimizers.items()
    }


def restore_gradients(optimizers: Mapping[str, Optimizer], state: object, label: str) -> None:
    """Give parameters back the gradients that waited.

    Raises:
        CheckpointError: If they are not those of these parameters.
    """
    for name, grads in (state if isinstance(state, Mapping) else {}).items():
        parameters = _parameters(optimizers[name]) if name in optimizers else []
        for place, grad in (grads if isinstance(grads, Mapping) else {}).items():
            if not isinstance(place, int) or not 0 <= place < len(parameters):
                raise CheckpointError(
                    f"'{label}' has a gradient at the place {place!r} of the optimizer '{name}', "
                    f"which has {len(parameters)} parameters."
                )
            _restore(parameters[place], grad, f"'{label}': gradient {place} of '{name}'")


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
    parameter.grad = grad.to(parameter.device, parameter.dtype, copy=True)


def _portable(grad: Tensor) -> object:
    if not grad.is_sparse:
        return grad.detach()
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
