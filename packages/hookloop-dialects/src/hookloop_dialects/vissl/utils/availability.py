"""Which optional packages of VISSL are installed."""

from __future__ import annotations

import sys
from importlib.util import find_spec


def is_available(package: str) -> bool:
    """Return whether a package is installed, and not one that we stand in for."""
    try:
        found = find_spec(package)
    except ValueError:  # A module without a spec.
        found = None
    loaded = sys.modules.get(package)
    origin = getattr(loaded, "__name__", "") or getattr(found, "name", "")
    return found is not None and not origin.startswith("hookloop_dialects.")


def is_apex_available() -> bool:
    """Return whether NVIDIA's apex is installed."""
    return is_available("apex")


def is_wandb_available() -> bool:
    """Return whether Weights & Biases is installed."""
    return is_available("wandb")


def is_tensorboard_available() -> bool:
    """Return whether TensorBoard is installed."""
    return is_available("tensorboard")
