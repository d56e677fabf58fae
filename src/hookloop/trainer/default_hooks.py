"""The standard set of hooks, and how a project changes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from hookloop.engine.hook import Hook
from hookloop.errors import HookError, nearest
from hookloop.hooks.data.set_sampler_epoch import SetSamplerEpoch
from hookloop.hooks.ending.answer_requests import AnswerRequests
from hookloop.hooks.ending.stop_on_signal import StopOnSignal
from hookloop.hooks.guarding.require_finite_loss import RequireFiniteLoss
from hookloop.hooks.measuring.record_environment import RecordEnvironment
from hookloop.hooks.measuring.record_times import RecordTimes
from hookloop.hooks.saving.save_checkpoint import SaveCheckpoint
from hookloop.hooks.schedules.step_schedules import StepSchedules
from hookloop.hooks.showing.show_progress import ShowProgress
from hookloop.hooks.weights.sync_buffers import SyncBuffers
from hookloop.hooks.writing.write_metrics import WriteMetrics
from hookloop.trainer.adapters import adapt, adapt_all, dialects

# Classes and not instances: hooks have state, so each run needs hooks of its own.
DEFAULT_HOOKS: dict[str, Callable[[], Hook]] = {
    "timing": RecordTimes,
    "console": ShowProgress,
    "metrics": WriteMetrics,
    "schedule": StepSchedules,
    "sampler": SetSamplerEpoch,
    "nan": RequireFiniteLoss,
    "checkpoint": SaveCheckpoint,
    "signals": StopOnSignal,
    "environment": RecordEnvironment,
    "requests": AnswerRequests,
}
# A single process has nothing to synchronize. The names are known there too: the same script may
# run on many ranks.
ON_MANY_RANKS: dict[str, Callable[[], Hook]] = {"buffers": SyncBuffers}
KNOWN_HOOKS = DEFAULT_HOOKS | ON_MANY_RANKS


def default_hooks(
    changes: Mapping[str, Hook | None] | Literal[False] | None, *, is_alone: bool = True
) -> list[Hook]:
    """Build the standard set: an entry replaces the hook of its name, None removes it.

    Args:
        changes: The entries; False for no hooks at all.
        is_alone: Whether the run has a single process. Otherwise some more belong to the set.
    """
    if changes is False:
        return []
    changes = {our_name(name): hook for name, hook in (changes or {}).items()}
    hooks: list[Hook] = []
    for name, make in (DEFAULT_HOOKS if is_alone else KNOWN_HOOKS).items():
        hook = changes.pop(name) if name in changes else make()
        if hook is not None:
            hooks += _named(name, hook)
    for name, hook in changes.items():
        if hook is None and name in ON_MANY_RANKS:
            continue
        if hook is None:
            raise HookError(
                f"default_hooks: there is no '{name}' to remove.{nearest(name, DEFAULT_HOOKS)} "
                f"There are: {', '.join(DEFAULT_HOOKS)}.",
                argument="default_hooks",
            )
        hooks += _named(name, hook)
    return hooks


def our_name(name: str) -> str:
    """Return our name of a default hook where a dialect has another for it."""
    if name in KNOWN_HOOKS:
        return name
    return next(
        (theirs[name] for one in dialects().values() if name in (theirs := one.default_hooks)), name
    )


def own_hooks(hooks: Iterable[Hook] | Mapping[str, Hook | None] | None) -> list[Hook]:
    """Read the user's hooks: a list, or a mapping that names them and in which None removes."""
    if hooks is None:
        return []
    if isinstance(hooks, Mapping):
        named = [_named(name, hook) for name, hook in hooks.items() if hook is not None]
        return [hook for several in named for hook in several]
    return adapt_all(hooks)


def with_own(standard: Sequence[Hook], own: Sequence[Hook]) -> list[Hook]:
    """Return the default hooks and the user's; reject the name of the one for the other."""
    known = {hook.name: hook for hook in standard}
    for hook in own:
        name = getattr(hook, "name", None)  # What is not a hook is rejected by the plan.
        if name in known:
            ours, kind = type(known[name]).__name__, type(hook).__name__
            raise HookError(
                f"Two hooks are named '{name}': {kind}, and the default hook {ours}. An entry "
                f"default_hooks={{'{name}': ...}} takes its place, and in a config {name}: {{...}} "
                "without a type changes its arguments. To have both, give yours another name.",
                name,
            )
    return [*standard, *own]


def _named(name: str, hook: Hook) -> list[Hook]:
    """Name a hook; of several that stand for a foreign one, the first gets the name."""
    ours = adapt(hook)
    # Names are unique in a run, so the name cannot be given to all of them.
    return [ours[0].named(name), *ours[1:]]
