"""Fill the message hub of a native run, if anyone reads it.

In MMEngine two default hooks put counters, learning rates, losses, metrics and times into the hub.
A native run has neither. They are added to it when a hook or the model mentions the hub in its
code, or asks for it during the run; a run in which nobody does pays nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import CodeType
from typing import TYPE_CHECKING

from hookloop import Priority
from hookloop.dialects import Adapter

if TYPE_CHECKING:
    from hookloop import Run
    from hookloop_mmengine.facade import RunnerFacade
    from hookloop_mmengine.hooks import RuntimeInfoHook

_OTHERS = ("hookloop.", "hookloop_mmengine.", "torch.", "mmengine.", "builtins")


def is_mentioned(run: Run, kind: str, *others: str) -> bool:
    """Return whether a foreign hook or the model of a run mentions a class or other names."""
    hooks = [hook.foreign for hook in run.hooks if isinstance(hook, Adapter)]
    own = {type(part) for part in (*hooks, *run.model.modules())}
    return any(_mentions(one, kind, {kind, *others}) for one in own)


def _mentions(kind: type, imported: str, names: set[str]) -> bool:
    for ancestor in kind.__mro__:
        if f"{ancestor.__module__}.".startswith(_OTHERS):
            continue
        # A helper function of the same file may use it.
        if imported in vars(sys.modules.get(ancestor.__module__, object)):
            return True
        functions = (getattr(value, "__func__", value) for value in vars(ancestor).values())
        codes = (getattr(function, "__code__", None) for function in functions)
        if any(names & set(_names_in(code)) for code in codes if isinstance(code, CodeType)):
            return True
    return False


def _names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):  # A function within a function.
            yield from _names_in(constant)


def begin_filling(facade: RunnerFacade) -> None:
    """Add the two hooks to the run, unless it has them, and catch up with what they missed."""
    # Not at the top: the hooks import the runner's parts, which import this.
    from hookloop_mmengine.hooks import IterTimerHook, RuntimeInfoHook

    run = facade.run
    present = {type(hook).__name__ for hook in facade.hooks}
    info, timer = RuntimeInfoHook(), IterTimerHook()
    for hook, priority in ((info, Priority.VERY_HIGH), (timer, Priority.NORMAL)):
        if type(hook).__name__ not in present:
            # Before all hooks of the same priority: MMEngine's default hooks come first.
            facade.register_hook(hook, priority - 1)
    if "RuntimeInfoHook" in present:
        return
    info.before_run(facade)
    if run.phase == "train" and run.outcome.status == "running" and run.optimizers:
        info.before_train(facade)
        _catch_up(facade, info)


def _catch_up(facade: RunnerFacade, info: RuntimeInfoHook) -> None:
    """Put the values of the current iteration and of the last validation."""
    run = facade.run
    if run.batch is None:  # No iteration has begun.
        return
    info.before_train_iter(facade, 0)
    if run.loss is not None:
        info.after_train_iter(facade, 0, outputs={"loss": run.loss})
    for name in run.metrics.names():
        if name.startswith("val/"):
            facade.message_hub.update_scalar(name, run.metrics.latest(name))
