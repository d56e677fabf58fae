"""VISSL's hooks that change or check the training: clipping, freezing, averages, NaN, masks."""

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
from hookloop.dialects.vissl.hooks.log_hooks import save_non_finite_output
from hookloop.errors import HookError

if TYPE_CHECKING:
    from hookloop.dialects.vissl.task import Task


class GradClipHook(Catalogued):
    """Clip the norm of the gradients.

    Args:
        norm_type: The order of the norm.
        max_norm: The limit.
    """

    dialect = "vissl"

    def __init__(self, norm_type: float = 2, max_norm: float = 1) -> None:
        self.norm_type = norm_type
        self.max_norm = max_norm

    def native_hooks(self) -> Sequence[Hook]:
        """Return the native hook."""
        return [native.ClipGradients(self.max_norm, norm_type=float(self.norm_type))]


class CheckNanLossHook(Catalogued):
    """Fail with a `FloatingPointError` when a loss is not finite, in every phase."""

    dialect = "vissl"

    def native_hooks(self) -> Sequence[Hook]:
        """Return the native hook."""
        # every=1, although it makes the CPU wait for the GPU: VISSL checks every batch.
        return [native.StopOnNaN(every=1, phases=("train", "val", "test"))]


class CheckNanModelOutputHook(QuietHook):
    """Save the batch of an output that is not finite, and continue.

    Args:
        world_size: Not used.
    """

    def __init__(self, world_size: int = 1) -> None:
        super().__init__()
        self.world_size = world_size

    def on_forward(self, task: Task) -> None:
        save_non_finite_output(task)


class CudaSynchronizeHook(Catalogued):
    """Synchronize CUDA after every module."""

    dialect = "vissl"

    def native_hooks(self) -> Sequence[Hook]:
        """Return the native hook."""
        return [native.SynchronizeCuda()]


class SSLModelComplexityHook(QuietHook):
    """Count parameters, operations and activations for ``MODEL.MODEL_COMPLEXITY.INPUT_SHAPE``."""

    def on_start(self, task: Task) -> None:
        shape = task.config.find("MODEL.MODEL_COMPLEXITY.INPUT_SHAPE")
        counting = native.CountComplexity(cast("Sequence[int] | None", shape))
        if shape is None:
            raise HookError(
                "SSLModelComplexityHook: the config has no MODEL.MODEL_COMPLEXITY.INPUT_SHAPE. "
                "Set it, or use hookloop.hooks.CountComplexity()."
            )
        counting.before_train(task.run)


class ProfilingHook(Catalogued):
    """Profile some iterations and write traces to ``profile/`` in the run directory.

    Args:
        profiling_config: VISSL's ``PROFILING``: ``START_ITERATION``, ``WARMUP_ITERATIONS``,
            ``NUM_ITERATIONS``.
    """

    dialect = "vissl"

    def __init__(self, profiling_config: Mapping[str, Any] | None = None) -> None:
        self.profiling_config = dict(profiling_config or {})

    def native_hooks(self) -> Sequence[Hook]:
        """Return the native hook."""
        config = self.profiling_config
        return [
            native.ProfileOperators(
                wait=int(config.get("START_ITERATION", 0)),
                warmup=int(config.get("WARMUP_ITERATIONS", 0)),
                active=int(config.get("NUM_ITERATIONS", 10)),
            )
        ]


class FreezeParametersHook(QuietHook):
    """Freeze parameters for their first iterations.

    The config's ``MODEL.TEMP_FROZEN_PARAMS_ITER_MAP`` lists pairs of a name and a number of
    iterations. A name may begin with ``module.``, which VISSL requires.
    """

    takes_part_in_training = True

    def on_backward(self, task: Task) -> None:
        # DistributedDataParallel adds the prefix to the names that VISSL sees.
        pairs = task.config.find("MODEL.TEMP_FROZEN_PARAMS_ITER_MAP", [])
        wanted = {
            str(name).removeprefix("module."): int(iters)
            for name, iters in cast("Sequence[tuple[str, int]]", pairs)
        }
        found = {name for name, _ in task.model.named_parameters() if name in wanted}
        assert found == set(wanted), f"no parameter is named {sorted(set(wanted) - found)}"
        for name, parameter in task.model.named_parameters():
            if task.iteration < wanted.get(name, 0):
                # None, not zero: with momentum or weight decay, zero still changes a parameter.
                parameter.grad = None


class SetDataSamplerEpochHook(QuietHook):
    """Set the epoch of the phase's sampler to the index of the phase."""

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
        update_iter: Iterations between two updates.
        warmup: Share of the training in which the average is a copy of the weights.
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
                "EmaHook: meters of the average are not offered. Use "
                "hookloop.hooks.AverageWeights(), which validates with the averaged weights."
            )
        self.update_iter = update_iter
        self.warmup = warmup
        self.decay = decay

    def on_start(self, task: Task) -> None:
        average = copy.deepcopy(task.model).requires_grad_(False)
        # A resume restores the state before on_start.
        saved = getattr(self.state, "ema_model", None)
        if saved is not None:
            average.load_state_dict(saved)
        task.ema_model = average
        # state_dict shares the tensors, so the state follows every update.
        self.state.ema_model = average.state_dict()  # type: ignore[attr-defined]

    @torch.no_grad()
    def on_update(self, task: Task) -> None:
        if task.iteration % self.update_iter:
            return
        own = cast("torch.nn.Module", task.ema_model).state_dict()
        for name, value in task.model.state_dict().items():
            # As in VISSL: counters of batch norm, and half precision, are copied.
            if task.where >= self.warmup and value.dtype == torch.float32:
                own[name].lerp_(value, 1 - self.decay)
            else:
                own[name].copy_(value)


class ModelOutputMaskHook(QuietHook):
    """In test phases, mask the scores of classes that no sample of the data has."""

    takes_part_in_training = True

    def __init__(self) -> None:
        super().__init__()
        self._labels: Tensor | None = None

    def on_forward(self, task: Task) -> None:
        output = task.last_batch.model_output
        if task.train or not isinstance(output, Tensor):
            return
        if self._labels is None:  # Once: reading all labels of a data set takes time.
            self._labels = torch.tensor(sorted(set(_labels_of(task.datasets["test"]).tolist())))
        mask = torch.ones(output.shape[-1], dtype=torch.bool, device=output.device)
        mask[self._labels.to(output.device)] = False
        # In place, as in VISSL, so that the loss and the metrics use the masked scores.
        output.masked_fill_(mask, float("-inf"))


def _labels_of(dataset: object) -> Tensor:
    tensors = getattr(dataset, "tensors", None)
    found = getattr(dataset, "targets", tensors[1] if tensors else None)
    if found is None:
        raise HookError(
            f"ModelOutputMaskHook: {type(dataset).__name__} has no 'targets' with the labels. "
            "Use hookloop.hooks.MaskOutputs(keep=[...])."
        )
    return torch.as_tensor(found)
