"""`PlantFault`: do something wrong on purpose, once and without a word, to see that it is found."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from hookloop.data.batch import move_tensors, pair_of, size_of
from hookloop.engine.hook import Hook, Priority
from hookloop.errors import HookError, nearest

if TYPE_CHECKING:
    from hookloop.engine.run import Run

KINDS = (
    "flip", "skip-sample", "relabel", "nan", "dropout", "hook-state", "generator", "gradient", "lr",
)  # fmt: skip
EDITS = ("metrics", "weights")
"""What ``edit:`` changes in the files of a run that has ended."""

FACTOR = 1.1
"""By how much a planted rate or probability is too large."""


@dataclass(frozen=True)
class Fault:
    """A fault to plant.

    Attributes:
        kind: What is done: one of `KINDS`, or ``edit``.
        target: The parameter, or the file; empty for the first one.
        iter: The iteration in which it is done; 0 for a file.

    >>> Fault.parse("flip:layer2.weight@120")
    Fault(kind='flip', target='layer2.weight', iter=120)
    >>> str(Fault.parse("relabel")), str(Fault.parse("edit:metrics"))
    ('relabel@1', 'edit:metrics')
    """

    kind: str
    target: str = ""
    iter: int = 0

    @classmethod
    def parse(cls, text: str) -> Fault:
        """Read ``kind:target@iteration``.

        Raises:
            HookError: If there is no such fault.
        """
        what, at, number = text.partition("@")
        kind, _, target = what.partition(":")
        if kind == "edit":
            if target not in EDITS or at:
                raise HookError(f"'{text}' is not a fault: write edit:metrics or edit:weights.")
            return cls(kind, target)
        if kind not in KINDS:
            raise HookError(
                f"'{text}' is not a fault.{nearest(kind, KINDS)} There are "
                f"{', '.join(f'{one}@N' for one in KINDS)}, edit:metrics and edit:weights; a "
                "parameter is named as in flip:layer2.weight@120."
            )
        if (at and not number.isdigit()) or (number and int(number) < 1):
            raise HookError(f"'{text}': write an iteration after the @, such as {what}@60.")
        if target and kind not in ("flip", "gradient", "nan"):
            raise HookError(f"'{text}': {kind} has nothing to name; write {kind}@{number or 60}.")
        return cls(kind, target, int(number) if number else 1)

    def __str__(self) -> str:
        what = f"{self.kind}:{self.target}" if self.target else self.kind
        return f"{what}@{self.iter}" if self.iter else what


class PlantFault(Hook):
    """Do one thing wrong in one iteration, as a broken machine or a bug would: without a word.

    It shows what finds such a fault: ``hookloop replay --check``, ``bisect``, ``audit``. Faults are
    ``flip:NAME@N`` (a bit of a weight before iteration N), ``gradient:NAME@N`` and ``nan:NAME@N``
    (a number of a gradient), ``skip-sample@N`` (the first sample of a batch gives way to the
    second), ``relabel@N`` (it gets another target), ``dropout@N`` and ``lr@N`` (a tenth more from
    then on), ``hook-state@N`` (a number in the state of another hook) and ``generator@N`` (a random
    number is drawn). Without a name it is the first parameter.

    The record of the run notes it as planted, so that a replay without it is not rejected.

    Args:
        fault: The fault.

    Example:
        >>> str(PlantFault("flip:layer2.weight@120").fault)
        'flip:layer2.weight@120'
    """

    takes_part_in_training = True
    plants_fault = True
    """A replay does without it: it has to find what it did."""
    priority = Priority.VERY_LOW  # Before what looks at the iteration.
    draws_random_numbers = True

    def __init__(self, fault: str) -> None:
        self.fault = Fault.parse(fault)
        if self.fault.kind == "edit":
            raise HookError(
                f"PlantFault: '{fault}' changes the files of a run that has ended: "
                "hookloop train --inject does that."
            )
        self._early = {
            "flip": self._flip, "skip-sample": self._skip_sample, "relabel": self._relabel,
            "dropout": self._raise_dropout, "hook-state": self._change_state,
            "generator": lambda run: torch.rand(1), "lr": self._raise_rates,
        }.get(self.fault.kind)  # fmt: skip
        self._late = {"gradient": self._flip_gradient, "nan": self._put_nan}.get(self.fault.kind)

    def before_train(self, run: Run) -> None:
        """Reject a fault for which there is nothing in this training."""
        kind = self.fault.kind
        if kind in ("flip", "gradient", "nan"):
            self._parameter(run)
        elif kind == "dropout" and not _dropouts(run.model):
            raise HookError(f"PlantFault: '{self.fault}': the model has no dropout.")
        elif kind == "hook-state" and not list(self._states(run)):
            raise HookError(
                f"PlantFault: '{self.fault}': no other hook that takes part has a number in its "
                "state."
            )

    def before_train_iter(self, run: Run) -> None:
        if self._early is not None and run.progress.iter + 1 == self.fault.iter:
            with torch.no_grad():
                self._early(run)

    def before_update(self, run: Run) -> None:
        if self._late is not None and run.progress.iter + 1 == self.fault.iter:
            with torch.no_grad():
                self._late(run)

    def _parameter(self, run: Run) -> nn.Parameter:
        named = dict(run.model.named_parameters())
        if not self.fault.target:
            return next(one for one in named.values() if one.requires_grad)
        if self.fault.target not in named:
            raise HookError(
                f"PlantFault: the model has no parameter '{self.fault.target}'."
                f"{nearest(self.fault.target, named)} There are: {', '.join(list(named)[:8])}."
            )
        return named[self.fault.target]

    def _flip(self, run: Run) -> None:
        _flip_bit(self._parameter(run))

    def _flip_gradient(self, run: Run) -> None:
        if (gradient := self._parameter(run).grad) is not None:
            _flip_bit(gradient)

    def _put_nan(self, run: Run) -> None:
        if (gradient := self._parameter(run).grad) is not None:
            _local(gradient).view(-1)[:1] = float("nan")

    def _raise_rates(self, run: Run) -> None:
        for optimizer in run.optimizers.values():
            for group in optimizer.param_groups:
                group["lr"] = group["lr"] * FACTOR

    def _raise_dropout(self, run: Run) -> None:
        first = _dropouts(run.model)[0]
        first.p = min(1.0, first.p * FACTOR + 0.01)

    def _skip_sample(self, run: Run) -> None:
        size = size_of(run.batch)

        def repeat(tensor: Tensor) -> Tensor:
            if tensor.ndim and tensor.shape[0] == size > 1:
                tensor = tensor.clone()
                tensor[0] = tensor[1]
            return tensor

        run.batch = move_tensors(run.batch, run.device, repeat)

    def _relabel(self, run: Run) -> None:
        pair = pair_of(run.batch)
        targets = pair[1] if pair is not None else None
        if not isinstance(targets, Tensor) or not targets.ndim:
            raise HookError(
                f"PlantFault: '{self.fault}': the batch has no targets that are a tensor."
            )
        other = targets.clone()
        if targets.is_floating_point():
            other[0] = -other[0] + 1
        else:
            other[0] = (other[0] + 1) % max(2, int(targets.max()) + 1)
        targets.copy_(other)

    def _states(self, run: Run) -> Iterable[tuple[Hook, Callable[[], None]]]:
        for hook in run.hooks:
            if hook is self or not hook.takes_part_in_training:
                continue
            state = dict(hook.state_dict())
            for name, value in state.items():
                if isinstance(value, int | float) and not isinstance(value, bool):
                    changed = {**state, name: value + 1}
                    yield hook, partial(hook.load_state_dict, changed)
                    break
                if isinstance(value, dict):
                    inner = [key for key, one in value.items() if isinstance(one, Tensor)]
                    if inner:
                        held = cast("dict[str, Tensor]", value)
                        yield hook, partial(_flip_bit, held[inner[0]])
                        break

    def _change_state(self, run: Run) -> None:
        _, change = next(iter(self._states(run)))
        change()


def _dropouts(model: nn.Module) -> list[nn.Dropout]:
    kinds = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout)
    return [one for one in model.modules() if isinstance(one, kinds)]  # type: ignore[misc]


def _local(tensor: Tensor) -> Tensor:
    held = tensor.detach()
    return cast("Tensor", held.to_local()) if hasattr(held, "to_local") else held


def _flip_bit(tensor: Tensor) -> None:
    """Flip a bit in the middle of the first number: large enough to last, small enough to hide."""
    held = _local(tensor)
    if held.numel():
        raw = held.reshape(-1)[:1].clone().view(torch.uint8)
        raw[-2 if raw.numel() > 1 else -1] ^= 0x10
        held.view(-1)[:1] = raw.view(held.dtype)
