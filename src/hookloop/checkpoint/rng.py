"""The state of every random number generator of this process, as plain containers."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import cast

import numpy as np
import torch


def seed_all(seed: int) -> None:
    """Seed Python's, NumPy's and torch's generators."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def rng_state() -> dict[str, object]:
    """Return the states of Python's, NumPy's, torch's and CUDA's generators."""
    kind, keys, position, has_gauss, gauss = np.random.get_state()
    state: dict[str, object] = {
        "python": random.getstate(),
        "numpy": (kind, torch.from_numpy(np.asarray(keys).copy()), position, has_gauss, gauss),
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def set_rng_state(state: Mapping[str, object]) -> None:
    """Continue the generators where `rng_state` found them."""
    version, internal, gauss_next = cast("tuple[int, list[int], float | None]", state["python"])
    random.setstate((version, tuple(internal), gauss_next))
    kind, keys, position, has_gauss, gauss = cast(
        "tuple[str, torch.Tensor, int, int, float]", state["numpy"]
    )
    np.random.set_state((kind, keys.numpy(), position, has_gauss, gauss))
    torch.set_rng_state(cast("torch.Tensor", state["torch"]))
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(cast("list[torch.Tensor]", state["cuda"]))
