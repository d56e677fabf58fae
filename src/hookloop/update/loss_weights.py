"""What the mean of a loss counts, so that means of several batches are weighted correctly.

Cross-entropy leaves out the targets that it ignores, and weights the others by their class. Its
means over microbatches, ranks and batches of a validation have the mean of them all only if each
counts for what it is a mean of. Other losses of torch count every element, so that batches of equal
samples count by their number.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import CodeType
from typing import TYPE_CHECKING, cast

from torch import Tensor, nn
from torch.nn import functional

from hookloop.metrics.weighted import Weight

if TYPE_CHECKING:
    from hookloop.engine.run import Run

IGNORED = -100
"""The target that torch's losses leave out by default."""

_log = logging.getLogger("hookloop")


@dataclass(frozen=True)
class Counter:
    """Counts what a cross-entropy is a mean of.

    Attributes:
        ignore_index: The target that is left out.
        class_weights: Returns the weight of each class, if there are any.
    """

    ignore_index: int = IGNORED
    class_weights: Callable[[], Tensor | None] = lambda: None

    def __call__(self, run: Run, targets: object) -> Weight | None:
        """Return the sum of the weights of the targets; on a device, nothing is read."""
        if not isinstance(targets, Tensor):
            return None
        if targets.ndim <= 1 and self.is_plain and run.world.cuts_batches:
            # One label per sample, so that the shares of the ranks are known before any loss is:
            # their gradients need no correction, which would cost precision.
            return None
        output = run.output
        if targets.is_floating_point():  # Probabilities: one for each class, none is ignored.
            classes = output.shape[min(1, output.ndim - 1)] if isinstance(output, Tensor) else 1
            return float(targets.numel() / max(1, classes))
        is_counted = targets != self.ignore_index
        counts: Tensor = is_counted
        if (of_classes := self.class_weights()) is not None:
            # A target that is ignored need not be a class at all.
            weights = of_classes.detach()[targets.where(is_counted, 0).long()]
            counts = weights.where(is_counted, 0.0)
        total = counts.sum()
        return float(total) if total.device.type == "cpu" else total

    @property
    def is_plain(self) -> bool:
        """Whether every label counts the same, unless one is `IGNORED`."""
        return self.ignore_index == IGNORED and self.class_weights() is None


def counter_of(loss: object) -> Counter | None:
    """Return what counts the targets of a loss; None for other losses, and where it is unknown."""
    function, settings = _unwrap(loss)
    if settings.get("reduction", "mean") != "mean":
        return None
    if function in (functional.cross_entropy, functional.nll_loss):
        index = cast("int", settings.get("ignore_index", IGNORED))
        return Counter(index, lambda: cast("Tensor | None", settings.get("weight")))
    if _is_exactly(loss, nn.CrossEntropyLoss) or _is_exactly(loss, nn.NLLLoss):
        module = cast("nn.CrossEntropyLoss", loss)
        if module.reduction == "mean":
            return Counter(module.ignore_index, lambda: module.weight)
    return None


def warn_if_uncounted(loss: object) -> None:
    """Warn of a loss of the user's own that leaves out targets, or weights them, in its own way."""
    if counter_of(loss) is None and (reason := why_uncounted(loss)):
        _log.warning(
            "loss= %s, and how much that leaves of a batch is not known: batches are weighted by "
            "their samples, so that the mean over several of them is not exact. Give "
            "torch.nn.CrossEntropyLoss(...) with its arguments, or write step=, which returns "
            "{'loss': loss, 'weight': what it is a mean of}.",
            reason,
        )


def why_uncounted(loss: object) -> str | None:
    """Return by what a loss is known to leave out or weight targets; None if nothing is known."""
    function, settings = _unwrap(loss)
    if settings.get("reduction", "mean") != "mean" or getattr(loss, "reduction", "mean") != "mean":
        return None
    if isinstance(loss, nn.Module):
        index = getattr(loss, "ignore_index", None)
        is_default = index == IGNORED and isinstance(loss, nn.CrossEntropyLoss | nn.NLLLoss)
        return None if index is None or is_default else f"has ignore_index={index}"
    code = getattr(function, "__code__", None)
    if "ignore_index" in settings or (isinstance(code, CodeType) and _names_ignored(code)):
        return "is a function that passes ignore_index"
    return None


def _names_ignored(code: CodeType) -> bool:
    # The names of arguments in a call are a constant of the function: a tuple.
    return any(isinstance(one, tuple) and "ignore_index" in one for one in code.co_consts)


def _unwrap(loss: object) -> tuple[object, Mapping[str, object]]:
    """Return the function of a partial, and the arguments that it is given by name."""
    settings: dict[str, object] = {}
    while isinstance(loss, partial):
        settings = {**loss.keywords, **settings}
        loss = loss.func
    return loss, settings


def _is_exactly(loss: object, kind: type[nn.Module]) -> bool:
    """Return whether a loss is one of torch, or computes in the same way."""
    forward: Callable[..., object] | None = getattr(type(loss), "forward", None)
    return isinstance(loss, kind) and forward is kind.forward
