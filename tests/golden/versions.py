"""The few names that are no public API, and may differ between the versions that are compared."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from hookloop import Hook
from hookloop.engine import points

POINTS = tuple(
    name
    for name, value in inspect.getmembers(Hook, inspect.isfunction)
    if name.startswith(("before_", "after_", "on_"))
)
"""Every mount point of this version, in alphabetical order."""

WITHIN = frozenset(point.name for point in points.POINTS if point.within)
"""Those within an update, where no hook may act in `Trainer.loop`."""


def stop_clocks() -> None:
    """Let nothing happen because some seconds have passed: calls are counted meanwhile."""
    module = importlib.import_module("hookloop.hooks.writing._timetable")
    module.SELDOM = float("inf")  # type: ignore[attr-defined]


def read_checkpoint(path: Any) -> dict[str, Any]:
    """Read a checkpoint of this run, which holds tensors and plain containers."""
    import torch

    state: dict[str, Any] = torch.load(path, weights_only=True, map_location="cpu")
    return state
