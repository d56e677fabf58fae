"""`RecomputeBatchNorm`: give batch norm exact statistics instead of a running average."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils._pytree import tree_leaves, tree_map_only

from hookloop.data.batch import size_of
from hookloop.errors import HookError
from hookloop.hooks._state_of_ranks import StateOfRanks
from hookloop.metrics.moments import Moments

if TYPE_CHECKING:
    from torch.utils.hooks import RemovableHandle

    from hookloop.engine.run import Run

_log = logging.getLogger("hookloop")


@dataclass(frozen=True)
class Inputs:
    """The arguments of one call of the model.

    Attributes:
        samples: How many samples they hold.
        args: Positional arguments.
        kwargs: Keyword arguments.
        on_cpu: If loaded from a checkpoint, which of the tensors were in main memory.
    """

    samples: int
    args: tuple[object, ...]
    kwargs: dict[str, object]
    on_cpu: tuple[bool, ...] | None = None

    def plain(self, device: torch.device) -> dict[str, object] | None:
        """Return them for a checkpoint; None if a checkpoint cannot hold them."""
        if not _is_plain((self.args, self.kwargs)):
            return None
        leaves = tree_leaves((self.args, self.kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        # A checkpoint is loaded to the CPU. Only some arguments belong back on the device: lengths
        # for packed sequences, for example, must stay in main memory.
        on_cpu = tuple(tensor.device.type == "cpu" != device.type for tensor in tensors)
        arguments = {"args": self.args, "kwargs": self.kwargs}
        return {"samples": self.samples, **arguments, "on_cpu": self.on_cpu or on_cpu}

    @classmethod
    def of(cls, state: Mapping[str, object]) -> Inputs:
        """Take back what `plain` returned."""
        return cls(**state)  # type: ignore[arg-type]

    def moved(self, device: torch.device) -> Inputs:
        """Return them on the devices that they were on when they were saved."""
        if self.on_cpu is None:
            return self
        stays = iter(self.on_cpu)

        def move(tensor: Tensor) -> Tensor:
            return tensor if next(stays) else tensor.to(device)

        args, kwargs = tree_map_only(Tensor, move, (self.args, self.kwargs))
        return Inputs(self.samples, args, kwargs)


class RecomputeBatchNorm(StateOfRanks):
    """Recompute the statistics of batch norm, with the current weights, from recent batches.

    The inputs of the last ``samples`` samples of the epoch are kept and passed through the model
    once more: each layer then has the exact mean and unbiased variance of its inputs. Momentum,
    other buffers, random numbers and the training itself do not change; no data is read. A
    checkpoint that is made while inputs are kept holds them, so that a resumed run computes the
    same statistics: within an epoch, and with ``at="validation"`` until the validation is done.
    Such a checkpoint grows by the size of ``samples`` inputs. On many ranks, all of them together
    keep that many samples, and each layer gets the statistics of all.

    Args:
        samples: How many samples to use, at least; the inputs stay in memory and in checkpoints.
        at: ``"epoch"``, after the training of an epoch, or ``"validation"``, right before a
            validation and for its weights: with `AverageWeights` these are the averaged ones.

    Example:
        >>> RecomputeBatchNorm(samples=512, at="validation").samples
        512
    """

    takes_part_in_training = True

    def __init__(
        self, samples: int = 1024, *, at: Literal["epoch", "validation"] = "epoch"
    ) -> None:
        if samples < 1:
            raise HookError(f"RecomputeBatchNorm: samples must be at least 1, not {samples}.")
        if at not in ("epoch", "validation"):
            raise HookError(f"RecomputeBatchNorm: at='{at}': write 'epoch' or 'validation'.")
        self.samples = samples
        self.at = at
        self._handle: RemovableHandle | None = None
        self._window: deque[Inputs] = deque()
        self._device = torch.device("cpu")
        self._is_warned = False
        self._run: Run | None = None

    def state_dict(self) -> dict[str, object]:
        kept = [inputs.plain(self._device) for inputs in self._window]
        if None in kept:
            if not self._is_warned:
                self._is_warned = True
                _log.warning(
                    "RecomputeBatchNorm: the model's inputs are more than tensors in lists, tuples "
                    "and dicts, so no checkpoint can hold them: a run that is resumed within this "
                    "epoch recomputes the statistics from fewer samples."
                )
            kept = []
        return {"window": kept}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        kept = cast("list[Mapping[str, object]]", state.get("window", []))
        self._window = deque(map(Inputs.of, kept))

    def divide_state(
        self, states: Sequence[Mapping[str, object]], rank: int, size: int
    ) -> Mapping[str, object]:
        kept = (cast("list[object]", state.get("window", [])) for state in states[rank::size])
        return {"window": [inputs for window in kept for inputs in window]}

    def before_train(self, run: Run) -> None:
        self._device, self._run = run.device, run
        if run.world.logical:  # Statistics would be joined in another order.
            raise HookError(
                "RecomputeBatchNorm depends on the number of processes: leave it out with "
                "parallel: {logical: ...}.",
                self.name,
            )
        if not any(_has_statistics(layer) for layer in run.model.modules()):
            _log.warning("RecomputeBatchNorm: the model has no batch norm with statistics.")
            return
        self._window = deque(inputs.moved(run.device) for inputs in self._window)
        # A hook of the model, not run.batch: a step may call the model with anything.
        self._handle = run.model.register_forward_pre_hook(self._keep, with_kwargs=True)

    def before_train_epoch(self, run: Run) -> None:
        if run.progress.iter_in_epoch == 0:  # Not when a resumed run continues this epoch.
            self._window.clear()

    def after_train_epoch(self, run: Run) -> None:
        if self.at == "epoch":
            self._recompute(run)
            self._window.clear()

    def before_val(self, run: Run) -> None:
        if self.at == "validation":
            self._recompute(run)

    def after_run(self, run: Run) -> None:
        if self._handle is not None:
            self._handle.remove()
            self._handle = None
        if run.progress.stage != "inside":  # Inside an epoch, a later train() continues it.
            self._window.clear()

    def _keep(self, model: nn.Module, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        # Evaluations and passes without gradients, such as those of a teacher, are not training.
        if not (model.training and torch.is_grad_enabled()):
            return
        if self._run is None or _is_of_another_rank(self._run):
            return
        # Detached, or the graph of every kept batch would stay in memory.
        args, kwargs = tree_map_only(Tensor, Tensor.detach, (args, kwargs))
        self._window.append(Inputs(size_of([*args, *kwargs.values()]), args, kwargs))
        held = sum(inputs.samples for inputs in self._window)
        wanted = -(-self.samples // self._run.world.size)
        while held - self._window[0].samples >= wanted:
            held -= self._window.popleft().samples

    def _recompute(self, run: Run) -> None:
        # On many ranks one may have kept nothing, and still takes part in the exchange.
        if self._handle is None or not any(run.gather(bool(self._window))):
            return
        if run._internals.shards is not None:  # Ranks may have kept unequal numbers of batches.
            raise HookError(
                "RecomputeBatchNorm cannot use a sharded model: write parallel='replicated', or "
                "leave the hook out.",
                self.name,
            )
        was_training = run.model.training
        run.model.train()  # It already is, unless a resumed run begins with a validation.
        # The forward passes update running averages and counters, which are put back below.
        before = {name: buffer.clone() for name, buffer in run.model.named_buffers()}
        moments: dict[nn.Module, Moments] = {}

        def observe(layer: nn.Module, args: tuple[Tensor, ...]) -> None:
            moments.setdefault(layer, Moments()).add(args[0])

        handles = [layer.register_forward_pre_hook(observe) for layer in _layers(run.model)]
        devices = [run.device] if run.device.type == "cuda" else []
        try:
            with torch.no_grad(), torch.random.fork_rng(devices):
                for inputs in self._window:
                    run.model(*inputs.args, **inputs.kwargs)
        finally:
            for handle in handles:
                handle.remove()
            with torch.no_grad():
                for name, buffer in run.model.named_buffers():
                    buffer.copy_(before[name])
            run.model.train(was_training)
        for layer, seen in _of_all_ranks(run, moments).items():
            layer.running_mean.copy_(seen.mean)  # type: ignore[operator]
            layer.running_var.copy_(seen.variance())  # type: ignore[operator]


def _of_all_ranks(run: Run, own: Mapping[nn.Module, Moments]) -> Mapping[nn.Module, Moments]:
    """Combine the statistics of each layer over all ranks."""
    if run.world.is_alone:
        return own
    named = {name: layer for name, layer in run.model.named_modules() if _has_statistics(layer)}
    parts = {name: own[layer].parts() for name, layer in named.items() if layer in own}
    joined: dict[nn.Module, Moments] = {}
    for of_rank in run.gather(parts):
        for name, part in of_rank.items():
            joined.setdefault(named[name], Moments()).join(part)
    return joined


def _is_of_another_rank(run: Run) -> bool:
    """Return whether the batch is a sample that this rank reads only to take part."""
    return run.place is not None and run.phase == "train" and not run.place.own


def _layers(model: nn.Module) -> list[_BatchNorm]:
    return [
        layer
        for layer in model.modules()
        if isinstance(layer, _BatchNorm) and layer.training and layer.running_mean is not None
    ]


def _has_statistics(layer: nn.Module) -> bool:
    return isinstance(layer, _BatchNorm) and layer.running_mean is not None


def _is_plain(value: object) -> bool:
    """Return whether a checkpoint can hold a value."""
    # Exact types: a subclass would need its class to be loaded, which weights_only forbids.
    if type(value) in (list, tuple):
        return all(map(_is_plain, cast("list[object]", value)))
    if type(value) is dict:
        return all(map(_is_plain, value.values())) and all(map(_is_plain, value))
    return value is None or type(value) in (Tensor, int, float, bool, str)
