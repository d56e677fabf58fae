"""The standard set of hooks, and how a project changes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Literal, cast

from hookloop.core.foreign import adapt, adapt_all
from hookloop.core.hook import Hook
from hookloop.errors import HookError, nearest

# By path, because imports run from hooks to core and not back, and because a hook that a run
# does not use should cost no import.
DEFAULT_HOOKS: dict[str, str] = {
    "timing": "hookloop.hooks.record_times:RecordTimes",
    "console": "hookloop.hooks.show_progress:ShowProgress",
    "metrics": "hookloop.hooks.write_metrics:WriteMetrics",
    "schedule": "hookloop.hooks.step_schedules:StepSchedules",
    "sampler": "hookloop.hooks.set_sampler_epoch:SetSamplerEpoch",
    "checkpoint": "hookloop.hooks.save_checkpoint:SaveCheckpoint",
    "signals": "hookloop.hooks.stop_on_signal:StopOnSignal",
}

# What configs of MMEngine call the same hooks; an entry of theirs takes the place of ours.
THEIR_NAMES = {
    "logger": "console",
    "param_scheduler": "schedule",
    "sampler_seed": "sampler",
    "timer": "timing",
}


def default_hooks(changes: Mapping[str, Hook | None] | Literal[False] | None) -> list[Hook]:
    """Build the standard set: an entry replaces the hook of its name, None removes it."""
    if changes is False:
        return []
    changes = {THEIR_NAMES.get(name, name): hook for name, hook in (changes or {}).items()}
    hooks: list[Hook] = []
    for name, path in DEFAULT_HOOKS.items():
        hook = changes.pop(name) if name in changes else _load(path)()
        if hook is not None:
            hooks += _named(name, hook)
    for name, hook in changes.items():
        if hook is None:
            raise HookError(
                f"default_hooks: there is no '{name}' to remove.{nearest(name, DEFAULT_HOOKS)} "
                f"There are: {', '.join(DEFAULT_HOOKS)}."
            )
        hooks += _named(name, hook)
    return hooks


def own_hooks(hooks: Iterable[Hook] | Mapping[str, Hook | None]) -> list[Hook]:
    """Read the user's hooks: a list, or a mapping that names them and in which None removes."""
    if isinstance(hooks, Mapping):
        named = [_named(name, hook) for name, hook in hooks.items() if hook is not None]
        return [hook for several in named for hook in several]
    return adapt_all(hooks)


def _named(name: str, hook: Hook) -> list[Hook]:
    """Name a hook; of several that stand for a foreign one, the first gets the name."""
    ours = adapt(hook)
    return [ours[0].named(name), *ours[1:]]


def _load(path: str) -> Callable[[], Hook]:
    module, name = path.split(":")
    return cast("Callable[[], Hook]", getattr(import_module(module), name))
