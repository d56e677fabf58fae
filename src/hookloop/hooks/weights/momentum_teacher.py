"""`MomentumTeacher`: keep a copy of the model that follows it slowly, to learn from."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from hookloop.checkpoint.state.shape import Named, check_state, is_tensor
from hookloop.errors import HookError
from hookloop.hooks._many_tensors import copy_all, lerp_all
from hookloop.hooks._state_of_ranks import StateOfRanks

if TYPE_CHECKING:
    from hookloop.engine.run import Run
    from hookloop.requests import Rewind


class MomentumTeacher(StateOfRanks):
    """Keep a teacher whose weights follow the model's, for self-distillation.

    A step gets it with ``MomentumTeacher.of(run)``. After each iteration the teacher keeps the
    share ``momentum`` of its weights and takes the rest from the model; buffers are copied. The
    momentum moves from ``momentum`` to ``final`` along a half cosine over the run.

    Args:
        momentum: Share of its own weights that the teacher keeps, at first.
        final: The share at the end of the run; None keeps it constant.
        module: The submodule to copy, for example ``"backbone"``; the whole model by default.
        eval_mode: Whether the teacher is in evaluation mode.

    Example:
        >>> hook = MomentumTeacher(momentum=0.996)
        >>> [round(hook.share_kept(done), 4) for done in (0.0, 0.5, 1.0)]
        [0.996, 0.998, 1.0]
    """

    takes_part_in_training = True

    def __init__(
        self,
        momentum: float = 0.996,
        final: float | None = 1.0,
        *,
        module: str = "",
        eval_mode: bool = True,
    ) -> None:
        for name, share in (("momentum", momentum), ("final", final)):
            if share is not None and not 0 <= share <= 1:
                raise HookError(f"MomentumTeacher: {name} must lie between 0 and 1, not {share}.")
        self.momentum = momentum
        self.final = momentum if final is None else final
        self.module = module
        self.eval_mode = eval_mode
        self._teacher: nn.Module | None = None
        self._loaded: Mapping[str, Tensor] = {}
        self._pairs: tuple[list[Tensor], list[Tensor]] = ([], [])
        self._buffers: tuple[list[Tensor], list[Tensor]] = ([], [])

    @classmethod
    def of(cls, run: Run) -> nn.Module:
        """Return the teacher of a run."""
        for hook in run.hooks:
            if isinstance(hook, cls):
                return hook.teacher
        raise HookError("This run has no MomentumTeacher: add one to its hooks.")

    @property
    def teacher(self) -> nn.Module:
        """The teacher; it exists once training or evaluation has begun."""
        if self._teacher is None:
            raise HookError(
                "MomentumTeacher: there is no teacher before training or evaluation begins."
            )
        return self._teacher

    def share_kept(self, done: float) -> float:
        """Return the momentum after a part of the run, from 0 to 1."""
        return self.final + (self.momentum - self.final) * (1 + math.cos(math.pi * done)) / 2

    def state_dict(self) -> dict[str, object]:
        state = self._teacher.state_dict() if self._teacher is not None else self._loaded
        return {"teacher": dict(state)}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        check_state(state, {"teacher": Named(is_tensor)})
        # The buffers of this rank, which are those of its data, replace those of the first.
        own = cast("Mapping[str, Tensor]", state.get("buffers", {}))
        self._loaded = {**cast("Mapping[str, Tensor]", state["teacher"]), **own}
        self._teacher = None

    def own_state(self) -> dict[str, object]:
        if self._teacher is None:
            return {"buffers": {}}
        state, named = self._teacher.state_dict(), dict(self._teacher.named_buffers())
        return {"buffers": {name: part for name, part in state.items() if name in named}}

    def divide_state(
        self, states: Sequence[Mapping[str, object]], rank: int, size: int
    ) -> Mapping[str, object]:
        return {}  # Those of the first rank: each iteration copies them from the model.

    def before_train(self, run: Run) -> None:
        if self.momentum != self.final and run.progress.total_iters is None:
            raise HookError(
                "MomentumTeacher: the length of the run is not known, so the momentum cannot move "
                "to 'final': give final=None, or max_iters= to the Trainer."
            )
        self.before_val(run)

    def after_rewind(self, run: Run, rewind: Rewind) -> None:
        self.before_val(run)  # Takes the weights of the checkpoint.

    def before_val(self, run: Run) -> None:
        # A checkpoint may be evaluated without training, and the step needs the teacher there too.
        if self._teacher is not None:
            return
        student = _submodule(run.model, self.module)
        # Its own mode and no gradients: it is evaluated, not trained.
        self._teacher = copy.deepcopy(student).requires_grad_(False).train(not self.eval_mode)
        if self._loaded:
            self._teacher.load_state_dict(dict(self._loaded))
            self._loaded = {}
        # Collected once, so that an iteration does not walk the modules.
        self._pairs = list(self._teacher.parameters()), list(student.parameters())
        self._buffers = list(self._teacher.buffers()), list(student.buffers())

    before_test = before_predict = before_val

    def after_train_iter(self, run: Run) -> None:
        total = run.progress.total_iters
        share = self.share_kept(min(1.0, run.progress.iter / total)) if total else self.momentum
        with torch.no_grad():
            lerp_all(*self._pairs, 1 - share)
            if self._buffers[0]:  # An empty list is rejected.
                copy_all(*self._buffers)


def _submodule(model: nn.Module, name: str) -> nn.Module:
    try:
        return model.get_submodule(name)
    except AttributeError as error:
        raise HookError(f"MomentumTeacher: the model has no module '{name}': {error}.") from error
