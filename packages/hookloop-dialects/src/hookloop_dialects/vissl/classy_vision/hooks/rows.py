"""The hooks of ClassyVision that are built from native ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from hookloop import Hook, Run
from hookloop import hooks as native
from hookloop.errors import HookError
from hookloop_dialects.vissl.classy_vision.hooks.row import Row
from hookloop_dialects.vissl.views import LastBatch


class ExponentialMovingAverageModelHook(Row):
    """Average the weights, and use the average in test phases.

    Args:
        decay: Share of the old average in an update.
        consider_bn_buffers: Whether buffers are averaged too.
        device: ``gpu`` keeps the average on the model's device, ``cpu`` in main memory.
    """

    def __init__(
        self,
        decay: float,
        consider_bn_buffers: bool = True,
        device: Literal["gpu", "cpu"] = "gpu",
    ) -> None:
        assert 0 <= decay <= 1, f"decay must be between 0 and 1, not {decay}"
        assert device in ("gpu", "cpu"), f"device is gpu or cpu, not {device}"
        self.decay = decay
        self.consider_bn_buffers = consider_bn_buffers
        self.device = device

    def native_hooks(self) -> Sequence[Hook]:
        """Return the averaging hook, which starts from the weights before the first update."""
        share = 1 - self.decay
        # The native hook rejects a momentum of exactly 0 or 1, which ClassyVision allows. So it
        # is moved inside the limits here and set exactly below.
        hook = native.AverageWeights(
            momentum=min(max(share, 1e-12), 1 - 1e-12),
            warmup=False,
            buffers=self.consider_bn_buffers,
            device="cpu" if self.device == "cpu" else None,
        )
        hook.share = lambda updates: share  # type: ignore[method-assign]
        return [hook]


class ModelComplexityHook(Row):
    """Count parameters, operations and activations."""

    def native_hooks(self) -> Sequence[Hook]:
        """Return the native hook."""
        return [native.CountComplexity()]


class PreciseBatchNormHook(Row):
    """Recompute the statistics of batch norm at the end of each train phase.

    Args:
        num_samples: Number of samples to use.
        cache_samples: Not used, because the last samples are kept anyway.
    """

    def __init__(self, num_samples: int, cache_samples: bool = False) -> None:
        self.num_samples = num_samples
        self.cache_samples = cache_samples

    def native_hooks(self) -> Sequence[Hook]:
        """Return the native hook."""
        return [native.RecomputeBatchNorm(samples=self.num_samples)]


class ProfilerHook(Row):
    """Profile the first iteration."""

    def native_hooks(self) -> Sequence[Hook]:
        """Return the native hook."""
        # ClassyVision profiles one forward pass; an iteration includes it.
        return [native.ProfileOperators(wait=0, warmup=0, active=1)]


class ProgressBarHook(Row):
    """Show the progress of the run."""

    def native_hooks(self) -> Sequence[Hook]:
        """Return the native hook."""
        return [native.ShowProgress()]


class TorchscriptHook(Row):
    """Write ``torchscript.pt`` at the end of the training, in evaluation mode.

    Args:
        torchscript_folder: The directory.
        use_trace: Whether to trace the model; False is not offered.
        trace_strict: Not used.
        device: The device to trace on; only the CPU is offered.
    """

    def __init__(
        self,
        torchscript_folder: str,
        use_trace: bool = True,
        trace_strict: bool = True,
        device: str = "cpu",
    ) -> None:
        if not use_trace or device != "cpu":
            raise HookError(
                "TorchscriptHook can only trace the model on the CPU. Export it yourself in "
                "on_end, or use hookloop.hooks.ExportModel('export')."
            )
        self.torchscript_folder = torchscript_folder
        self.trace_strict = trace_strict

    def native_hooks(self) -> Sequence[Hook]:
        """Return the native hook."""
        # Absolute: the native hook takes a relative path from the run directory.
        file = Path(self.torchscript_folder).resolve() / "torchscript.pt"
        return [native.ExportModel("torchscript", file=str(file), inputs=_inputs_of)]


def _inputs_of(run: Run) -> object:
    """Return the model's input from the last batch: its entry ``input``, or all of it."""
    sample = LastBatch(run).sample
    return sample["input"] if isinstance(sample, Mapping) and "input" in sample else sample
