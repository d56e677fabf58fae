"""Lightning's own callbacks, when it is installed: those that replace parts of its engine.

All others run as they are. These are rejected, with what does their work here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hookloop.errors import HookError

_PACKAGES = ("lightning.pytorch.callbacks.", "pytorch_lightning.callbacks.")


def check_own_callback(callback: object) -> None:
    """Reject a callback of Lightning's own that replaces a part of its engine."""
    for kind in type(callback).__mro__:
        instead = INSTEAD.get(kind.__name__)
        if instead is not None and _is_lightnings(kind):
            advice = instead if isinstance(instead, str) else instead(callback)
            name = type(callback).__name__
            by = "" if name == kind.__name__ else f" (a {kind.__name__})"
            raise HookError(
                f"{name}{by} replaces a part of Lightning's engine, which does not run here: use "
                f"{advice} instead."
            )


def is_last(callback: object) -> bool:
    """Return whether Lightning calls a callback after all others: it looks at their metrics."""
    names = {kind.__name__ for kind in type(callback).__mro__ if _is_lightnings(kind)}
    return bool(names & {"EarlyStopping", "Checkpoint"})


def _is_lightnings(kind: type) -> bool:
    return f"{kind.__module__}.".startswith(_PACKAGES)


def _save_checkpoint(callback: Any) -> str:  # noqa: ANN401 - any version's ModelCheckpoint
    """Write the native hook with the arguments of a ModelCheckpoint."""
    given = []
    steps = getattr(callback, "_every_n_train_steps", 0)
    epochs = getattr(callback, "_every_n_epochs", 1) or 1
    given.append(f"every='{steps} iters'" if steps else f"every='{epochs} epochs'")
    if monitor := getattr(callback, "monitor", None):
        given.append(f"best='{str(monitor).replace('val_', 'val/', 1)}'")
        rule = "greater" if getattr(callback, "mode", "min") == "max" else "less"
        given.append(f"rule='{rule}'")
        if (top := getattr(callback, "save_top_k", 1)) > 1 or top == -1:
            given.append(f"keep_best={top if top > 0 else None}")
    elif getattr(callback, "save_top_k", 1) == -1:
        given.append("keep=None")
    return f"default_hooks={{'checkpoint': hookloop.hooks.SaveCheckpoint({', '.join(given)})}}"


_SHOWS = "hookloop.hooks.ShowProgress (a default hook)"
_AVERAGES = "hookloop.hooks.AverageWeights"
_COUNTS = "hookloop.hooks.CountComplexity"

INSTEAD: dict[str, str | Callable[[Any], str]] = {
    "ModelCheckpoint": _save_checkpoint,
    "OnExceptionCheckpoint": "hookloop.hooks.SaveCheckpoint(on_exception=True)",
    "ProgressBar": _SHOWS,
    "StochasticWeightAveraging": _AVERAGES,
    "WeightAveraging": _AVERAGES,
    "GradientAccumulationScheduler": "Trainer(accumulate=...)",
    "BatchSizeFinder": "a batch size of your DataLoader",
    "LearningRateFinder": "a learning rate of your optimizer",
    "ModelSummary": _COUNTS,
    "ThroughputMonitor": "hookloop.hooks.RecordThroughput",
    "BasePredictionWriter": "hookloop.hooks.SavePredictions",
    "SpikeDetection": "hookloop.hooks.RollBack, which also goes back and leaves out the batch",
}
