"""One operation over many tensors at once; shared by the hooks that look at or average weights.

torch's optimizers use the same kernels, which take a fraction of the time of one call per tensor.
Their names are private: a torch without them gets the loops below, with the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Tensors = Sequence[Tensor]


def _copy(targets: Tensors, sources: Tensors) -> None:
    for target, source in zip(targets, sources, strict=True):
        target.copy_(source)


def _lerp(targets: Tensors, sources: Tensors, share: float) -> None:
    for target, source in zip(targets, sources, strict=True):
        target.lerp_(source, share)


def _norm(tensors: Tensors, order: float) -> Sequence[Tensor]:
    return [torch.linalg.vector_norm(tensor, order) for tensor in tensors]


# Bound once, since a wrapper would cost a call per iteration.
copy_all: Callable[[Tensors, Tensors], object] = getattr(torch, "_foreach_copy_", _copy)
"""Copy tensors into others; the lists must not be empty."""

lerp_all: Callable[[Tensors, Tensors, float], object] = getattr(torch, "_foreach_lerp_", _lerp)
"""Move tensors towards others by a share of the distance."""

norms_of: Callable[[Tensors, float], Sequence[Tensor]] = getattr(torch, "_foreach_norm", _norm)
"""Return a norm of each tensor."""
