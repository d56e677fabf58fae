"""``mmengine.utils.dl_utils.trace``: whether torch traces a model."""

from __future__ import annotations

import torch


def is_jit_tracing() -> bool:
    """Return whether ``torch.jit.trace`` is running."""
    return bool(torch.jit.is_tracing())  # type: ignore[attr-defined, no-untyped-call]
