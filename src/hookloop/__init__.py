"""hookloop: a training engine for PyTorch built on hooks.

The names below are imported when they are first used, so that ``import hookloop`` does not import
torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookloop.lazy import load_name
from hookloop.version import VERSION as __version__

# Type checkers cannot see what `__getattr__` returns, so the table below is repeated as imports.
if TYPE_CHECKING:
    from hookloop.checkpoint.saving.request import Save
    from hookloop.checkpoint.state.pretrained import Pretrained
    from hookloop.checkpoint.store.index import Saved
    from hookloop.checkpoint.store.store import CheckpointStore
    from hookloop.config.bisecting import Bisection, bisect
    from hookloop.config.blaming import blame
    from hookloop.config.build import build
    from hookloop.config.forking import Fork, fork
    from hookloop.config.load import load
    from hookloop.config.registry import (
        DATA,
        HOOKS,
        LOSSES,
        METRICS,
        MODELS,
        OPTIMIZERS,
        SCHEDULES,
    )
    from hookloop.config.replaying import audit, replay, samples
    from hookloop.engine.hook import Hook, Priority
    from hookloop.engine.points import Point
    from hookloop.engine.progress import Progress
    from hookloop.engine.run import Run
    from hookloop.errors import HookloopError, LossWarning
    from hookloop.every import Every, limit
    from hookloop.lr_schedule import Schedule
    from hookloop.outcome import Interrupted, Outcome
    from hookloop.runs.policy import Machine
    from hookloop.short_runs.find_batch import FoundBatch, find_batch
    from hookloop.short_runs.find_lr import find_lr
    from hookloop.short_runs.short_run import ShortRun, short_run
    from hookloop.trainer.intended_changes import Resume
    from hookloop.trainer.model_table import describe_model
    from hookloop.trainer.preparation import ActivationCheckpointing, Cast, ChannelsLast, Compile
    from hookloop.trainer.settings import Data, Setup, Validation
    from hookloop.trainer.trainer import Trainer
    from hookloop.update.update import Update

__all__ = [
    "DATA",
    "HOOKS",
    "LOSSES",
    "METRICS",
    "MODELS",
    "OPTIMIZERS",
    "SCHEDULES",
    "ActivationCheckpointing",
    "Bisection",
    "Cast",
    "ChannelsLast",
    "CheckpointStore",
    "Compile",
    "Data",
    "Every",
    "Fork",
    "FoundBatch",
    "Hook",
    "HookloopError",
    "Interrupted",
    "LossWarning",
    "Machine",
    "Outcome",
    "Point",
    "Pretrained",
    "Priority",
    "Progress",
    "Resume",
    "Run",
    "Save",
    "Saved",
    "Schedule",
    "Setup",
    "ShortRun",
    "Trainer",
    "Update",
    "Validation",
    "__version__",
    "audit",
    "bisect",
    "blame",
    "build",
    "describe_model",
    "find_batch",
    "find_lr",
    "fork",
    "limit",
    "load",
    "replay",
    "samples",
    "short_run",
]

_NAMES_BY_MODULE = {
    "hookloop.checkpoint.store.index": ("Saved",),
    "hookloop.checkpoint.saving.request": ("Save",),
    "hookloop.checkpoint.store.store": ("CheckpointStore",),
    "hookloop.checkpoint.state.pretrained": ("Pretrained",),
    "hookloop.config.bisecting": ("Bisection", "bisect"),
    "hookloop.config.blaming": ("blame",),
    "hookloop.config.build": ("build",),
    "hookloop.config.forking": ("Fork", "fork"),
    "hookloop.config.load": ("load",),
    "hookloop.config.registry": (
        "DATA", "HOOKS", "LOSSES", "METRICS", "MODELS", "OPTIMIZERS", "SCHEDULES",
    ),
    "hookloop.config.replaying": ("audit", "replay", "samples"),
    "hookloop.engine.hook": ("Hook", "Priority"),
    "hookloop.lr_schedule": ("Schedule",),
    "hookloop.engine.points": ("Point",),
    "hookloop.engine.progress": ("Progress",),
    "hookloop.engine.run": ("Run",),
    "hookloop.outcome": ("Interrupted", "Outcome"),
    "hookloop.runs.policy": ("Machine",),
    "hookloop.update.update": ("Update",),
    "hookloop.errors": ("HookloopError", "LossWarning"),
    "hookloop.every": ("Every", "limit"),
    "hookloop.trainer.intended_changes": ("Resume",),
    "hookloop.trainer.preparation": (
        "ActivationCheckpointing", "Cast", "ChannelsLast", "Compile",
    ),
    "hookloop.short_runs.find_batch": ("FoundBatch", "find_batch"),
    "hookloop.short_runs.find_lr": ("find_lr",),
    "hookloop.short_runs.short_run": ("ShortRun", "short_run"),
    "hookloop.trainer.model_table": ("describe_model",),
    "hookloop.trainer.settings": ("Data", "Setup", "Validation"),
    "hookloop.trainer.trainer": ("Trainer",),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names}


def __getattr__(name: str) -> object:
    if name in _MODULE_OF:
        return load_name(globals(), _MODULE_OF[name], name)
    if not name[:1].isupper():  # Python itself asks for submodules and for dunder names.
        raise AttributeError(f"module 'hookloop' has no attribute '{name}'")
    raise _missing(name)


def _missing(name: str) -> Exception:
    """Return the error for a name that is not here, with the import that is meant."""
    # Imported here, because only a mistake needs them.
    from hookloop import hooks, peers
    from hookloop.arguments import missing_name

    translated = peers.translation(name, peers.NAMES)
    if translated is not None:
        return missing_name(__name__, name, f"from hookloop import {translated}", __all__)
    ours = name if name in hooks.__all__ else peers.translation(name, peers.HOOKS)
    return missing_name(__name__, name, ours and f"from hookloop.hooks import {ours}", __all__)


def __dir__() -> list[str]:
    # Otherwise completion would offer only the names that were used already.
    return __all__
