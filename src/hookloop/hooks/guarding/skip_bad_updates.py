"""`SkipBadUpdates`: drop updates whose loss or gradients are not finite."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _NormBase

from hookloop.checkpoint.shards.dtensors import is_sharded
from hookloop.checkpoint.state.shape import check_state, is_count
from hookloop.engine.hook import Hook, Priority
from hookloop.errors import HookError
from hookloop.every import limit
from hookloop.hooks._many_tensors import copy_all
from hookloop.hooks.guarding._guarding import largest_of

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from hookloop.engine.run import Run

_log = logging.getLogger("hookloop")

CHECK_EVERY = 50
"""Iterations after which counts that are kept on the device are read."""


class SkipBadUpdates(Hook):
    """Drop an update if its loss or a gradient is NaN or infinite, and give up after too many.

    Weights, the optimizer's state and the statistics of batch norm stay as they were before the
    iteration; the iteration counts, and schedules step. ``train/skipped_updates`` counts the
    dropped updates from the start of the run. The run fails with a `FloatingPointError` after
    ``in_a_row`` of them in a row, or more than ``most`` in all.

    If the only optimizer is fused (``fused=True``), it skips on the device: nothing is read in an
    iteration, and the counts are read every 50 iterations, after each epoch and before each
    checkpoint. With any other optimizer, one number is read in each iteration, so the host waits
    for the GPU: it has to take the gradients away, because nothing else leaves the state of every
    optimizer unchanged. With the loss scaler of half precision, only updates whose loss is not
    finite count, because a scaler skips on its own while it looks for its scale. All ranks skip the
    same updates.

    Args:
        most: How many updates may be skipped in all.
        in_a_row: After how many skipped updates in a row to give up.

    Example:
        >>> SkipBadUpdates(most=100).in_a_row
        3
    """

    guards_by = "dropping"
    takes_part_in_training = True
    draws_random_numbers = False
    priority = Priority.VERY_HIGH  # Before clipping, which would spread one NaN over all gradients.
    writes = ("train/skipped_updates",)

    def __init__(self, most: int = 10, in_a_row: int = 3) -> None:
        for name, number in (("most", most), ("in_a_row", in_a_row)):
            if number < 1:
                raise HookError(f"SkipBadUpdates: {name} must be at least 1, not {number}.")
        self.most = most
        self.in_a_row = in_a_row
        self._skipped = 0
        self._row = 0
        self._longest = 0
        self._shown = 0  # What was recorded last.
        # The first three of these numbers, while nothing has read them.
        self._on_device: Tensor | None = None
        self._masked: Optimizer | None = None
        # The running statistics of norms, and what they were before the iteration.
        self._statistics: list[Tensor] = []
        self._before: list[Tensor] = []

    def state_dict(self) -> dict[str, object]:
        skipped, row, longest = self._counts()
        return {"skipped": skipped, "row": row, "longest": longest, "shown": self._shown}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        names = ("skipped", "row", "longest", "shown")
        check_state(state, dict.fromkeys(names, is_count))
        counts = [cast("int", state[name]) for name in names]
        self._skipped, self._row, self._longest, self._shown = counts
        self._on_device = None

    def before_train(self, run: Run) -> None:
        norms = [module for module in run.model.modules() if isinstance(module, _NormBase)]
        self._statistics = [buffer for norm in norms for buffer in norm.buffers()]
        self._before = [buffer.clone() for buffer in self._statistics]

    def before_train_iter(self, run: Run) -> None:
        if self._before:  # The forward pass changes them, before anything is known of the update.
            copy_all(self._before, self._statistics)

    def before_update(self, run: Run) -> None:
        gradients = _gradients(run)
        is_bad = self._is_bad(run, gradients)
        optimizer = _skips_itself(run, gradients)
        if optimizer is None:
            self._skipped, self._row, self._longest = self._counts()
            self._on_device = None
            self._note(run, bool(is_bad))
            return
        run.will_skip = is_bad  # Only the device knows.
        flag = is_bad.float()
        # The step looks at this attribute, as it does for torch's own loss scaler.
        optimizer.found_inf = flag  # type: ignore[attr-defined]
        self._masked = optimizer
        self._count(flag)
        for buffer, before in zip(self._statistics, self._before, strict=True):
            buffer.copy_(torch.where(is_bad, before, buffer))

    def after_update(self, run: Run) -> None:
        if self._masked is not None:
            del self._masked.found_inf  # type: ignore[attr-defined]
            self._masked = None

    @limit(CHECK_EVERY)
    def after_train_iter(self, run: Run) -> None:
        self._check(run)

    def after_train_epoch(self, run: Run) -> None:
        self._check(run)

    def before_save_checkpoint(self, run: Run, checkpoint: object) -> None:
        if run.outcome.status == "running":  # A failed run may save what it failed with.
            self._give_up(run)

    def after_run(self, run: Run) -> None:
        self.after_update(run)  # The update itself may have failed.
        self._statistics, self._before = [], []

    def _is_bad(self, run: Run, gradients: list[Tensor]) -> Tensor:
        """Return whether the update is to be dropped, as a tensor on the device."""
        looked = (
            [*largest_of(dict(enumerate(gradients))).values()]
            if run._internals.scaler is None
            else []
        )
        looked += [run.loss.detach()] if run.loss is not None else []
        if not looked:
            return torch.zeros((), dtype=torch.bool, device=run.device)
        numbers = torch.stack([number.to(run.device, torch.float64) for number in looked])
        is_bad = ~numbers.isfinite().all()
        if any(map(is_sharded, gradients)):  # Each rank has looked at its own parts.
            is_bad = run.reduce(is_bad.float(), "max") > 0
        return is_bad

    def _note(self, run: Run, is_bad: bool) -> None:
        """Count an update whose verdict is known, and drop it if it is bad."""
        self._row = self._row + 1 if is_bad else 0
        if not is_bad:
            return
        self._skipped += 1
        self._longest = max(self._longest, self._row)
        self._check(run)
        run.will_skip = True
        # Optimizers skip parameters without a gradient, and leave their state alone.
        for optimizer in run.optimizers.values():
            optimizer.zero_grad(set_to_none=True)
        if self._before:
            copy_all(self._statistics, self._before)

    def _count(self, flag: Tensor) -> None:
        """Count an update on the device."""
        counts = self._on_device
        if counts is None:
            start = [float(self._skipped), float(self._row), float(self._longest)]
            counts = torch.tensor(start, device=flag.device)
        row = (counts[1] + flag) * flag
        self._on_device = torch.stack((counts[0] + flag, row, torch.maximum(counts[2], row)))

    def _counts(self) -> tuple[int, int, int]:
        """Return how many were skipped, in a row until now, and in the longest row."""
        if self._on_device is None:
            return self._skipped, self._row, self._longest
        skipped, row, longest = map(int, self._on_device.tolist())
        return skipped, row, longest

    def _check(self, run: Run) -> None:
        """Record what was skipped since the last check; fail if it was too much."""
        skipped = self._counts()[0]
        if skipped > self._shown:
            if not self._shown:
                _log.warning("SkipBadUpdates: an update was not finite, and was skipped.")
            self._shown = skipped
            run.metrics.put("train/skipped_updates", skipped)
            self._give_up(run)

    def _give_up(self, run: Run) -> None:
        skipped, _, longest = self._counts()
        if longest < self.in_a_row and skipped <= self.most:
            return
        why = f"{longest} in a row" if longest >= self.in_a_row else f"more than most={self.most}"
        raise FloatingPointError(
            f"the loss or gradients of {skipped} updates were not finite by iteration "
            f"{run.metrics.stamp[0]}, {why}. The weights are those before them. Try a smaller "
            "learning rate, clip_norm=1.0, or bf16 instead of fp16, look for NaN in the data with "
            "StopOnNaN(every=1, dump=True), or raise the limits of SkipBadUpdates."
        )


def _gradients(run: Run) -> list[Tensor]:
    """Return the gradients that the optimizers would use."""
    return [
        parameter.grad
        for optimizer in run.optimizers.values()
        for group in optimizer.param_groups
        for parameter in group["params"]
        if parameter.grad is not None
    ]


def _skips_itself(run: Run, gradients: list[Tensor]) -> Optimizer | None:
    """Return the optimizer if its step can skip on the device, with its state unchanged."""
    if len(run.optimizers) != 1 or run._internals.scaler is not None:
        return None
    optimizer = run.optimizer
    groups = optimizer.param_groups
    is_fused = getattr(optimizer, "_step_supports_amp_scaling", False) and all(
        group.get("fused") for group in groups
    )
    # A first step with momentum would leave the new buffers unset. torch makes all other state
    # before the step, from zeros.
    has_state = not any(group.get("momentum") for group in groups) or (
        len(optimizer.state) >= len(gradients)
    )
    is_whole = is_fused and has_state and not any(map(is_sharded, gradients))
    return optimizer if is_whole else None
