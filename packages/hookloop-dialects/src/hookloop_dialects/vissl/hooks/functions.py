"""`SSLClassyHookFunctions`: the names of VISSL's events."""

from __future__ import annotations

from enum import Enum, auto


class SSLClassyHookFunctions(Enum):
    """VISSL's events; ``task.run_hooks(SSLClassyHookFunctions.on_step.name)`` fires one."""

    on_start = auto()
    on_phase_start = auto()
    on_forward = auto()
    on_loss_and_meter = auto()
    on_backward = auto()
    on_update = auto()
    on_step = auto()
    on_phase_end = auto()
    on_end = auto()
    on_exception = auto()
