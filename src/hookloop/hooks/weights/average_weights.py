"""`AverageWeights`: evaluate with averaged weights."""

from __future__ import annotations

import logging
from collections.abc import Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Literal, cast

import torch

from hookloop.checkpoint.state.shape import Named, check_state, is_count, is_tensor
from hookloop.engine.hook import AVERAGED, Priority
from hookloop.errors import HookError, nearest
from hookloop.hooks._intervals import moment_of
from hookloop.hooks._state_of_ranks import StateOfRanks
from hookloop.hooks.weights._second_weights import SecondWeights
from hookloop.parallel.reduce import mean_over_ranks

if TYPE_CHECKING:
    from torch import Tensor

    from hookloop.engine.run import Run
    from hookloop.requests import Rewind

KINDS = ("exponential", "stochastic", "annealing")
_log = logging.getLogger("hookloop")


class AverageWeights(StateOfRanks):
    """Average the weights during training and use the average in validation and testing.

    Training never sees the averaged weights. A checkpoint holds both sets: ``model`` is always the
    raw one, even in a checkpoint made during a validation, and ``averaged`` is the state of the
    model with averaged weights. Before ``begin`` the two are the same.

    The first update copies the weights. After n updates, an exponential average with a warm-up
    takes the share ``max(momentum, 9 / (10 + n))`` of the new weights. It therefore covers about
    the last ninth of a short training, forgets its first weights, and reaches ``momentum`` after
    ``9 / momentum`` updates: 45,000 by default.

    Args:
        kind: ``"exponential"`` moving average; ``"stochastic"``, the plain mean (SWA); or
            ``"annealing"``, exponential with the share ``gamma / (gamma + updates)`` at first.
        momentum: Share of the new weights in an update, a small number: 0.0002 is a decay of
            0.9998.
        warmup: Whether the exponential average begins with larger shares than ``momentum``.
        interval: Iterations from one update to the next.
        begin: When to begin, in completed iterations or epochs: ``1000``, ``"5 epochs"``.
        gamma: How slowly annealing approaches ``momentum``.
        buffers: Whether buffers, such as batch norm's statistics, are averaged and used too.
        device: Device to keep the average on; by default that of the weights.

    Example:
        >>> AverageWeights("stochastic", begin="75 epochs").share(3)
        0.25
        >>> [round(AverageWeights().share(n), 4) for n in (1, 100, 1000, 100_000)]
        [0.8182, 0.0818, 0.0089, 0.0002]
        >>> AverageWeights(momentum=2)
        Traceback (most recent call last):
        hookloop.errors.HookError: AverageWeights: momentum must lie between 0 and 1, not 2.
    """

    # Before other hooks, which find the averaged weights in the model at before_val.
    priority = Priority.ABOVE_NORMAL
    takes_part_in_training = True
    owns = (AVERAGED,)

    def __init__(  # noqa: PLR0913 - the documented options of an average
        self,
        kind: Literal["exponential", "stochastic", "annealing"] = "exponential",
        momentum: float = 0.0002,
        *,
        warmup: bool = True,
        interval: int = 1,
        begin: int | str = 0,
        gamma: int = 100,
        buffers: bool = False,
        device: str | None = None,
    ) -> None:
        if kind not in KINDS:
            raise HookError(
                f"AverageWeights: kind='{kind}': write {', '.join(KINDS)}.{nearest(kind, KINDS)}"
            )
        if not 0 < momentum < 1:
            raise HookError(f"AverageWeights: momentum must lie between 0 and 1, not {momentum}.")
        if interval < 1 or gamma < 1:
            raise HookError("AverageWeights: interval and gamma must be at least 1.")
        if momentum > 0.5 and kind != "stochastic":
            # Many libraries call 1 - momentum the decay, and 0.999 would be accepted in silence.
            _log.warning(
                "AverageWeights: momentum=%g is the share of the new weights; "
                "if it was meant as a decay, write %.6g.", momentum, 1 - momentum,
            )  # fmt: skip
        self.kind = kind
        self.momentum = momentum
        self.warmup = warmup
        self.interval = interval
        self.begin = moment_of(self, "begin", begin)
        self.gamma = gamma
        self.buffers = buffers
        self.device = device
        self._has_begun = False
        self._updates = 0
        self._weights: SecondWeights | None = None
        self._loaded: Mapping[str, Tensor] = {}
        self._loaded_buffers: Sequence[Tensor] = ()

    def share(self, updates: int) -> float:
        """Return the share of the new weights after a number of averaged iterations."""
        if updates == 0:
            return 1.0
        if self.kind == "stochastic":
            return 1 / (updates // self.interval + 1)
        if self.kind == "annealing":
            return max(self.momentum, self.gamma / (self.gamma + updates))
        if not self.warmup:
            return self.momentum
        return max(self.momentum, 9 / (10 + updates // self.interval))

    def state_dict(self) -> dict[str, object]:
        weights = self._weights.state_dict() if self._weights is not None else dict(self._loaded)
        return {"updates": self._updates, "averaged": weights, "warmup": self.warmup}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        check_state(state, {"updates": is_count, "averaged": Named(is_tensor)})
        self._updates = cast("int", state["updates"])
        # A run continues as it began. A checkpoint without this entry is older than the warm-up.
        self.warmup = cast("bool", state.get("warmup", False))
        # Kept until there is a model to compare it with: before_train, or the first evaluation.
        self._loaded = cast("Mapping[str, Tensor]", state["averaged"])
        self._loaded_buffers = cast("Sequence[Tensor]", state.get("buffers", ()))
        self._weights = None

    def describe(self, run: Run) -> Mapping[str, object]:
        return {"updates": self._updates}

    def own_state(self) -> dict[str, object]:
        # The weights are equal on all ranks. Batch norm's statistics are those of a rank's data.
        return {"buffers": [] if self._weights is None else self._weights.second_buffers()}

    def divide_state(
        self, states: Sequence[Mapping[str, object]], rank: int, size: int
    ) -> Mapping[str, object]:
        of_ranks = [cast("list[Tensor]", state.get("buffers", [])) for state in states]
        columns = zip(*of_ranks, strict=True)
        return {"buffers": [torch.stack(column).mean(0) for column in columns]}

    def before_train(self, run: Run) -> None:
        self._has_begun = self._updates > 0
        self._open(run)

    def after_rewind(self, run: Run, rewind: Rewind) -> None:
        self.before_train(run)  # Takes the weights of the checkpoint.

    def after_train_iter(self, run: Run) -> None:
        if not self._has_begun:  # A flag, so that later iterations do not compare moments.
            if not self.begin.reached(run.progress):
                return
            self._has_begun = True
        if self._updates % self.interval == 0 and self._weights is not None:
            self._weights.blend(self.share(self._updates))
        self._updates += 1

    def before_val(self, run: Run) -> None:
        if self._updates:
            weights = self._open(run)  # Opens them if a checkpoint is evaluated without training.
            weights.swap_in()
            # Each rank evaluates a part of the data, with the same model.
            if weights.buffers and not run.world.logical:  # There, they are equal already.
                mean_over_ranks([weights.live[index] for index in weights.buffers])

    def after_val(self, run: Run) -> None:
        if self._weights is not None:
            self._weights.swap_out()

    def on_exception(self, run: Run, error: BaseException) -> None:
        # Not only at after_run: a checkpoint of the failed run is made before that.
        self.after_val(run)

    before_test = before_predict = before_val
    after_test = after_predict = after_run = after_val

    def before_save_checkpoint(self, run: Run, checkpoint: MutableMapping[str, object]) -> None:
        super().before_save_checkpoint(run, checkpoint)
        state = cast("dict[str, Tensor]", checkpoint["model"])
        averaged = dict(state)  # Entries that are not averaged, so that a model can load it.
        if self._weights is not None and self._updates:
            averaged |= self._weights.second()
        # A checkpoint made during a validation finds the averaged numbers in the model.
        if self._weights is not None and self._weights.is_in:
            checkpoint["model"] = {**state, **self._weights.first()}
        checkpoint["averaged"] = averaged

    def _open(self, run: Run) -> SecondWeights:
        if self._weights is None:
            self._weights = SecondWeights(run.model, buffers=self.buffers, device=self.device)
            if self._loaded and self._updates:
                self._weights.load_state_dict(self._loaded)
                if self._loaded_buffers:
                    self._weights.load_second_buffers(self._loaded_buffers)
            self._loaded, self._loaded_buffers = {}, ()
        return self._weights
