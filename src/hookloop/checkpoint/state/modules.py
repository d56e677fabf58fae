"""What a pass through modules may change although nothing is trained: buffers and modes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import nn


def modules_of(*roots: object) -> list[nn.Module]:
    """List the modules within some objects, each once; what is not a module is left out."""
    found = [one for root in roots if isinstance(root, nn.Module) for one in root.modules()]
    return list(dict.fromkeys(found))


def keep_buffers(modules: Iterable[nn.Module]) -> Callable[[], None]:
    """Copy buffers, and return what puts them back in place."""
    # With their objects: a module may replace a buffer, instead of changing it in place.
    kept = [
        (module, name, buffer, buffer.detach().clone())
        for module in modules
        for name, buffer in module._buffers.items()
        if buffer is not None
    ]

    def put_back() -> None:
        with torch.no_grad():
            for module, name, buffer, value in kept:
                buffer.copy_(value)
                module._buffers[name] = buffer

    return put_back


def keep_modes(modules: Iterable[nn.Module]) -> Callable[[], None]:
    """Remember which modules train, and return what sets it again."""
    kept = [(module, module.training) for module in modules]

    def put_back() -> None:
        for module, is_training in kept:
            module.training = is_training

    return put_back
