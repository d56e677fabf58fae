"""hookloop: a training engine for PyTorch built on hooks.

The names below are imported when they are first used, so that ``import hookloop`` does not import
torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from hookloop.version import VERSION as __version__

if TYPE_CHECKING:
    from hookloop.checkpoint.weights import Pretrained
    from hookloop.config.registry import (
        DATA,
        HOOKS,
        LOSSES,
        METRICS,
        MODELS,
        OPTIMIZERS,
        SCHEDULES,
    )
    from hookloop.core.hook import Hook, Priority, limit
    from hookloop.core.lr_schedule import Schedule
    from hookloop.core.points import Point
    from hookloop.core.progress import Progress
    from hookloop.core.run import Interrupted, Outcome, Run
    from hookloop.errors import HookloopError
    from hookloop.every import Every
    from hookloop.trainer.trainer import Trainer

__all__ = [
    "DATA",
    "HOOKS",
    "LOSSES",
    "METRICS",
    "MODELS",
    "OPTIMIZERS",
    "SCHEDULES",
    "Every",
    "Hook",
    "HookloopError",
    "Interrupted",
    "Outcome",
    "Point",
    "Pretrained",
    "Priority",
    "Progress",
    "Run",
    "Schedule",
    "Trainer",
    "__version__",
    "limit",
]

_HOMES = {
    "hookloop.checkpoint.weights": ("Pretrained",),
    "hookloop.config.registry": (
        "DATA", "HOOKS", "LOSSES", "METRICS", "MODELS", "OPTIMIZERS", "SCHEDULES",
    ),
    "hookloop.core.hook": ("Hook", "Priority", "limit"),
    "hookloop.core.points": ("Point",),
    "hookloop.core.progress": ("Progress",),
    "hookloop.core.run": ("Interrupted", "Outcome", "Run"),
    "hookloop.core.lr_schedule": ("Schedule",),
    "hookloop.trainer.trainer": ("Trainer",),
    "hookloop.errors": ("HookloopError",),
    "hookloop.every": ("Every",),
}  # fmt: skip
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        if not name[:1].isupper():  # Python itself asks for submodules and for dunder names.
            raise AttributeError(f"module 'hookloop' has no attribute '{name}'")
        raise _missing(name)
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def _missing(name: str) -> Exception:
    """Return the error of a name that is not here, with the import that is meant."""
    from hookloop import hooks, peers
    from hookloop.arguments import missing_name

    theirs = peers.translation(name, peers.NAMES)
    if theirs is not None:
        return missing_name(__name__, name, f"from hookloop import {theirs}", __all__)
    ours = name if name in hooks.__all__ else peers.translation(name, peers.HOOKS)
    return missing_name(__name__, name, ours and f"from hookloop.hooks import {ours}", __all__)


def __dir__() -> list[str]:
    return __all__
