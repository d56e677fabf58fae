"""`ClipGradients`: limit the gradients before the optimizer uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.nn.utils import clip_grad_norm_, clip_grad_value_

from hookloop.engine.hook import Hook
from hookloop.errors import HookError

if TYPE_CHECKING:
    from torch import Tensor

    from hookloop.engine.run import Run


class ClipGradients(Hook):
    """Clip gradients by their norm or by value, for each optimizer or each parameter group.

    The plain case, one norm over everything, is ``Trainer(clip_norm=...)``. Norms before clipping
    are recorded as ``train/grad_norm``; with several optimizers or groups each has its own, named
    ``train/grad_norm/<optimizer>/<group>``, where a group goes by its ``name``, or else by its
    number.

    Args:
        max_norm: Limit of the norm. Give this or ``max_value``.
        max_value: Limit of the absolute value of each number.
        norm_type: Which norm: 2, 1, ``inf``.
        per_group: Whether each parameter group is clipped separately.

    Example:
        >>> ClipGradients(max_norm=1.0, per_group=True).writes
        ('train/grad_norm', 'train/grad_norm/*')
    """

    takes_part_in_training = True

    def __init__(
        self,
        max_norm: float | None = None,
        *,
        max_value: float | None = None,
        norm_type: float = 2.0,
        per_group: bool = False,
    ) -> None:
        if (max_norm is None) == (max_value is None):
            raise HookError("ClipGradients: give either max_norm= or max_value=.")
        for name, limit in (("max_norm", max_norm), ("max_value", max_value)):
            if limit is not None and not limit > 0:  # Written so that NaN is rejected too.
                raise HookError(f"ClipGradients: {name} must be positive, not {limit}.")
        self.max_norm = max_norm
        self.max_value = max_value
        self.norm_type = norm_type
        self.per_group = per_group
        # Clipping by value computes no norm that could be recorded.
        self.writes = ("train/grad_norm", "train/grad_norm/*") if max_norm is not None else ()

    def before_update(self, run: Run) -> None:
        for name, parameters in self._sets(run):
            if self.max_value is not None:
                clip_grad_value_(parameters, self.max_value)
            elif self.max_norm is not None:
                shards = run._internals.shards
                clip = clip_grad_norm_ if shards is None else shards.clip
                norm = clip(parameters, self.max_norm, self.norm_type)
                run.metrics.series(name).add(norm)  # As a tensor: no wait for the device.

    def _sets(self, run: Run) -> list[tuple[str, list[Tensor]]]:
        """Return the parameters that are clipped together, with the name of their norm."""
        # Not cached: a group may be added during training, as when layers are unfrozen.
        sets: list[tuple[str, list[Tensor]]] = []
        for name, optimizer in run.optimizers.items():
            base = f"train/grad_norm/{name}" if len(run.optimizers) > 1 else "train/grad_norm"
            groups = optimizer.param_groups
            if self.per_group and len(groups) > 1:
                sets += [
                    (f"{base}/{group.get('name', number)}", group["params"])
                    for number, group in enumerate(groups)
                ]
            else:
                together = [parameter for group in groups for parameter in group["params"]]
                sets.append((base, together))
        return sets
