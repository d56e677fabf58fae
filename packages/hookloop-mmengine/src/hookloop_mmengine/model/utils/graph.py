"""``mmengine.model.utils``: which parameters a loss depends on."""

from __future__ import annotations

import logging
from typing import Any

from torch import Tensor, nn

from hookloop_mmengine.logging import print_log


def detect_anomalous_params(loss: Tensor, model: nn.Module) -> None:
    """Log each parameter that a loss does not depend on, because it gets no gradient."""
    reached: set[object] = set()
    seen: set[object] = set()
    # A list and not recursion: the graph of a deep model is deeper than Python's stack.
    waiting: list[Any] = [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        reached.add(getattr(node, "variable", None))
        waiting.extend(parent for parent, _ in node.next_functions)
    for name, param in model.named_parameters():
        if param.requires_grad and param not in reached:
            print_log(
                f"{name} with shape {param.size()} is not in the computational graph \n",
                logger="current",
                level=logging.ERROR,
            )
