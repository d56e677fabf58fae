"""VISSL's hooks that change or check the training: clipping, freezing, NaN, masks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from hookloop import Hook
from hookloop import hooks as native
from hookloop.dialects import ConfigView
from hookloop.errors import HookError
from hookloop_dialects.vissl.classy_vision.hooks.classy_hook import QuietHook
from hookloop_dialects.vissl.classy_vision.hooks.row import Row
from hookloop_dialects.vissl.hooks.log_hooks import save_non_finite_output

if TYPE_CHECKING:
    from hookloop_dialects.vissl.task import Task


class GradClipHook(Row):
    """Clip the norm of the gradients.

    Args:
        norm_type: The order of the norm.
        max_norm: The limit.
    """

    def __init__(self, norm_type: float = 2, max_norm: float = 1) -> None:
        self.norm_type = norm_type
        self.max_norm = max_norm

    def native_hooks(self) -> Sequence[Hook]:
        """Return the native hook."""
        return [native.ClipGradients(self.max_norm, norm_type=float(self.norm_type))]


class CheckNanLossHook(Row):
    """Fail with a `FloatingPointError` when a loss is not finite, in every phase."""

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


class CudaSynchronizeHook(Row):
    """Synchronize CUDA after every module."""

    @staticmethod
    def is_enabled(model_config: Mapping[str, Any]) -> bool:
        """Return whether the section ``MODEL`` of a config asks for it."""
        return bool(model_config.get("FSDP_CONFIG", {}).get("FORCE_SYNC_CUDA", False))

    def native_hooks(self) -> Sequence[Hook]:
        """Return the native hook."""
        return [native.SynchronizeCuda()]


class SSLModelComplexityHook(QuietHook):
    """Count parameters, operations and activations for ``HOOKS.MODEL_COMPLEXITY.INPUT_SHAPE``."""

    def on_start(self, task: Task) -> None:
        # The run's own config: VISSL's default would be wrong for most models.
        config = ConfigView(task.run.config)
        # VISSL has moved the entry from MODEL to HOOKS.
        shape = config.find("HOOKS.MODEL_COMPLEXITY.INPUT_SHAPE") or config.find(
            "MODEL.MODEL_COMPLEXITY.INPUT_SHAPE"
        )
        if shape is None:
            raise HookError(
                "SSLModelComplexityHook: the config has no HOOKS.MODEL_COMPLEXITY.INPUT_SHAPE. "
                "Set it, or use hookloop.hooks.CountComplexity()."
            )
        native.CountComplexity(cast("Sequence[int]", shape)).before_train(task.run)


class ProfilingHook(Row):
    """Profile some iterations and write traces to ``profile/`` in the run directory.

    Args:
        profiling_config: VISSL's ``PROFILING``: ``START_ITERATION``, ``WARMUP_ITERATIONS``,
            ``NUM_ITERATIONS``.
    """

    @staticmethod
    def is_enabled(profiling_config: Mapping[str, Any]) -> bool:
        """Return whether the section ``PROFILING`` of a config asks for it."""
        times = profiling_config.get("RUNTIME_PROFILING", {})
        memory = profiling_config.get("MEMORY_PROFILING", {})
        is_timed = times.get("PROFILE_CPU", True) or times.get("PROFILE_GPU", True)
        return bool(memory.get("TRACK_BY_LAYER_MEMORY") or (times.get("USE_PROFILER") and is_timed))

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
