"""What a pass through a model may change although nothing is trained: buffers and modes."""

from __future__ import annotations

import torch
from torch import nn


class KeptModules:
    """The buffers and modes of modules at one moment.

    Args:
        roots: Modules; anything else is left alone.
    """

    def __init__(self, *roots: object) -> None:
        modules = [one for root in roots if isinstance(root, nn.Module) for one in root.modules()]
        self._modes = [(module, module.training) for module in modules]
        # With their objects: a module may replace a buffer, instead of changing it in place.
        self._buffers = [
            (module, name, buffer, buffer.detach().clone())
            for module in modules
            for name, buffer in module._buffers.items()
            if buffer is not None
        ]

    def put_back(self) -> None:
        """Set buffers and modes to what they were."""
        with torch.no_grad():
            for module, name, buffer, value in self._buffers:
                buffer.copy_(value)
                module._buffers[name] = buffer
        for module, is_training in self._modes:
            module.training = is_training
