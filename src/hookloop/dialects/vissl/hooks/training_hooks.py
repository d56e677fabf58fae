"""VISSL's hooks that act on the training: clipping, freezing, averages, checks, masks."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from hookloop import hooks as native
from hookloop.core.hook import Hook
from hookloop.dialects.adapter import Catalogued
from hookloop.dialects.vissl.classy_vision.hooks.classy_hook import ClassyHook, QuietHook
from hookloop.dialects.vissl.hooks.log_hooks import keep_output_that_is_not_finite
from hookloop.errors import HookError

if TYPE_CHECKING:
    from hookloop.dialects.vissl.task import Task


class GradClipHook(Catalogued):
    """Clip the norm of the gradients.

    Args:
        norm_type: Which norm.
        max_norm: Its limit.
    """

    dialect = "vissl"

    def __init__(self, norm_type: float = 2, max_norm: float = 1) -> None:
        self.norm_type = norm_type
        self.max_norm = max_norm

    def native_hooks(self) -> Sequence[Hook]:
        """Return the clipping hook."""
        return [native.ClipGradients(self.max_norm, norm_type=float(self.norm_type))]


class CheckNanLossHook(Catalogued):
    """Fail with a `FloatingPointError` when a loss is not finite, in every phase."""

    dialect = "vissl"

    def native_hooks(self) -> Sequence[Hook]:
        """Return the checking hook."""
        return [native.StopOnNaN(every=1, phases=("train", "val", "test"))]


class CheckNanModelOutputHook(QuietHook):
    """Save what led to an output that is not finite, and go on.

    Args:
        world_size: Not needed.
    """

    def __init__(self, world_size: int = 1) -> None:
        super().__init__()
        self.world_size = world_size

    def on_forward(self, task: Task) -> None:
        keep_output_that_is_not_finite(task)


class CudaSynchronizeHook(Catalogued):
    """Synchronise after every module."""

    dialect = "vissl"

    def native_hooks(self) -> Sequence[Hook]:
        """Return the synchronising hook."""
        return [native.SynchronizeCuda()]


class SSLModelComplexityHook(QuietHook):
    """Count parameters, operations and activations for ``MODEL.MODEL_COMPLEXITY.INPUT_SHAPE``."""

    def on_start(self, task: Task) -> None:
        shape = task.config.find("MODEL.MODEL_COMPLEXITY.INPUT_SHAPE")
        counting = native.CountComplexity(cast("Sequence[int] | None", shape))
        if shape is None:
            raise HookError(
                "SSLModelComplexityHook: the config has no MODEL.MODEL_COMPLEXITY.INPUT_SHAPE: "
                "give it, or use hookloop.hooks.CountComplexity()."
            )
        counting.before_train(task.run)


class ProfilingHook(Catalogued):
    """Profile some iterations; the traces are in ``profile/`` of the run directory.

    Args:
        profiling_config: VISSL's ``PROFILING``: ``START_ITERATION``, ``WARMUP_ITERATIONS``,
            ``NUM_ITERATIONS``.
    """

    dialect = "vissl"

    def __init__(self, profiling_config: Mapping[str, Any] | None = None) -> None:
        self.profiling_config = dict(profiling_config or {})

    def native_hooks(self) -> Sequence[Hook]:
        """Return the profiling hook."""
        config = self.profiling_config
        return [
            native.ProfileOperators(
                wait=int(config.get("START_ITERATION", 0)),
                warmup=int(config.get("WARMUP_ITERATIONS", 0)),
                active=int(config.get("NUM_ITERATIONS", 10)),
            )
        ]


class FreezeParametersHook(QuietHook):
    """Keep parameters as they are for their first iterations.

    The config's ``MODEL.TEMP_FROZEN_PARAMS_ITER_MAP`` lists pairs of a name and a number of
    iterations; a name may begin with ``module.``, as VISSL demands.
    """

    takes_part_in_training = True

    def on_backward(self, task: Task) -> None:
        pairs = task.config.find("MODEL.TEMP_FROZEN_PARAMS_ITER_MAP", [])
        wanted = {
            str(name).removeprefix("module."): int(iters)
            for name, iters in cast("Sequence[tuple[str, int]]", pairs)
        }
        found = {name for name, _ in task.model.named_parameters() if name in wanted}
        assert found == set(wanted), f"no parameter is named {sorted(set(wanted) - found)}"
        for name, parameter in task.model.named_parameters():
            if task.iteration < wanted.get(name, 0):
                parameter.grad = None


class SetDataSamplerEpochHook(QuietHook):
    """Tell the sampler of the phase which phase it is."""

    takes_part_in_training = True

    def on_phase_start(self, task: Task) -> None:
        sampler = getattr(task.dataloaders.get(task.phase_type), "sampler", None)
        put = getattr(sampler, "set_epoch", None)
        if callable(put):
            put(task.phase_idx)


class EmaHook(QuietHook):
    """Keep an exponential moving average of the model in ``task.ema_model``.

    Args:
        enable_ema_meters: Not offered; the native `AverageWeights` validates with the average.
        update_iter: Iterations from one update to the next.
        warmup: Share of the training in which the average is a copy.
        decay: Share of the old average in an update.
    """

    on_phase_start = ClassyHook._noop
    takes_part_in_training = True

    def __init__(
        self,
        enable_ema_meters: bool = False,
        update_iter: int = 1,
        warmup: float = 0.05,
        decay: float = 0.9999,
    ) -> None:
        super().__init__()
        if enable_ema_meters:
            raise HookError(
                "EmaHook: meters of the average are not offered; hookloop.hooks.AverageWeights() "
                "makes every validation with the averaged weights."
            )
        self.update_iter = update_iter
        self.warmup = warmup
        self.decay = decay

    def on_start(self, task: Task) -> None:
        average = copy.deepcopy(task.model).requires_grad_(False)
        saved = getattr(self.state, "ema_model", None)
        if saved is not None:
            average.load_state_dict(saved)
        task.ema_model = average
        self.state.ema_model = average.state_dict()  # type: ignore[attr-defined]

    @torch.no_grad()
    def on_update(self, task: Task) -> None:
        if task.iteration % self.update_iter:
            return
        own = cast("torch.nn.Module", task.ema_model).state_dict()
        for name, value in task.model.state_dict().items():
            if task.where >= self.warmup and value.dtype == torch.float32:
                own[name].lerp_(value, 1 - self.decay)
            else:
                own[name].copy_(value)


class ModelOutputMaskHook(QuietHook):
    """In test phases, mask the scores of classes that the data has no label of."""

    takes_part_in_training = True

    def __init__(self) -> None:
        super().__init__()
        self._labels: Tensor | None = None

    def on_forward(self, task: Task) -> None:
        output = task.last_batch.model_output
        if task.train or not isinstance(output, Tensor):
            return
        if self._labels is None:
            self._labels = torch.tensor(sorted(set(_labels_of(task.datasets["test"]).tolist())))
        mask = torch.ones(output.shape[-1], dtype=torch.bool, device=output.device)
        mask[self._labels.to(output.device)] = False
        output.masked_fill_(mask, float("-inf"))


def _labels_of(dataset: object) -> Tensor:
    tensors = getattr(dataset, "tensors", None)
    found = getattr(dataset, "targets", tensors[1] if tensors else None)
    if found is None:
        raise HookError(
            f"ModelOutputMaskHook: {type(dataset).__name__} has no 'targets' to tell the labels: "
            "use hookloop.hooks.MaskOutputs(keep=[...])."
        )
    return torch.as_tensor(found)
