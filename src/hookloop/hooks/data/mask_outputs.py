"""`MaskOutputs`: rule out classes that cannot be right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from hookloop.engine.hook import Hook, Priority
from hookloop.errors import HookError

if TYPE_CHECKING:
    from hookloop.engine.run import Run


class MaskOutputs(Hook):
    """Replace the scores of all but some classes, before loss and metrics see them.

    It is for evaluating on data that has only some of the classes the model knows. The output is
    copied, and the classes are those of its last dimension.

    Args:
        keep: Numbers of the classes to keep.
        value: The score that the others get.
        key: The entry to mask, if the output is a mapping.
        phases: Where: ``"val"``, ``"test"``, ``"train"``, ``"predict"``.

    Example:
        >>> MaskOutputs([0, 2]).masked(torch.tensor([[1.0, 5.0, 2.0]]))
        tensor([[1., -inf, 2.]])
    """

    priority = Priority.HIGH  # Before hooks that read the output.
    takes_part_in_training = True

    def __init__(
        self,
        keep: Sequence[int],
        *,
        value: float = -inf,
        key: str | None = None,
        phases: Sequence[str] = ("val", "test"),
    ) -> None:
        if not keep or min(keep) < 0:
            raise HookError(f"MaskOutputs: keep={list(keep)}: give numbers of classes, 0 or more.")
        if not phases or set(phases) - {"train", "val", "test", "predict"}:
            raise HookError(
                f"MaskOutputs: phases={list(phases)}: write train, val, test or predict."
            )
        self.keep = tuple(keep)
        self.value = value
        self.key = key
        self.phases = tuple(phases)

    def after_forward(self, run: Run) -> None:
        if run.phase not in self.phases:
            return
        output = run.output
        if isinstance(output, Tensor) and self.key is None:
            run.output = self.masked(output)
        elif isinstance(output, Mapping) and isinstance(output.get(self.key), Tensor):
            run.output = {**output, self.key: self.masked(output[self.key])}
        else:
            entries = ", ".join(map(str, output)) if isinstance(output, Mapping) else "none"
            raise HookError(
                f"MaskOutputs: the output is {type(output).__name__} with the entries {entries}: "
                "give key=, the name of the tensor to mask."
            )

    def masked(self, scores: Tensor) -> Tensor:
        """Return the scores with all classes masked except the kept ones."""
        if max(self.keep) >= scores.shape[-1]:
            raise HookError(
                f"MaskOutputs: there is no class {max(self.keep)}: the output has "
                f"{scores.shape[-1]}."
            )
        kept = torch.tensor(self.keep, device=scores.device)
        # Not in place: autograd may need the scores, and another hook may have kept them.
        masked = torch.full_like(scores, self.value)
        return masked.index_copy(-1, kept, scores.index_select(-1, kept))
