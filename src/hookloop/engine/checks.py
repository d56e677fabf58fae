"""What is rejected about hooks before training starts, each with the way to fix it.

First each hook by itself, then all of them together: names, and what they read and write in the
order in which they act.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from hookloop import peers
from hookloop.engine.hook import (
    FunctionHook,
    Hook,
    Priority,
    acts_at,
    interval_at,
    kind_of,
    method_of,
    priority_of,
)
from hookloop.engine.points import Point, PointTable
from hookloop.errors import HookError, MetricError, nearest
from hookloop.every import COUNTED, Every
from hookloop.peers import suggestion

# --- one hook by itself --------------------------------------------------------------------------


def check_hook(hook: Hook, points: PointTable) -> None:
    """Reject whatever is wrong with a hook by itself."""
    check_is_hook(hook)
    priority_of(hook)
    check_attributes(hook)
    check_methods(hook, points)
    check_every(hook, points)


def check_is_hook(hook: object) -> None:
    """Reject what is not a hook."""
    if isinstance(hook, Hook):
        return
    if isinstance(hook, type) and issubclass(hook, Hook):
        raise HookError(f"{hook.__name__} is a class, not a hook: write {hook.__name__}().")
    if isinstance(hook, str):
        raise HookError(f"'{hook}' is a name, not a hook: write {hook}(...).")
    raise HookError(
        f"{hook!r} is not a hook: subclass hookloop.Hook, or attach a function with "
        "@trainer.on('after_train_iter')."
    )


def check_attributes(hook: Hook) -> None:
    """Reject text in place of a list of names, and an unknown failure policy."""
    for attribute in ("reads", "writes"):
        # A string is a sequence too: its letters would be taken for names of metrics.
        if isinstance(name := getattr(hook, attribute), str):
            raise HookError(f"{kind_of(hook)}.{attribute} is a tuple of names: write ('{name}',).")
    if hook.on_error not in ("raise", "disable"):
        raise HookError(f"{kind_of(hook)}.on_error is 'raise' or 'disable', not {hook.on_error!r}.")


def check_methods(hook: Hook, points: PointTable) -> None:
    """Reject a method that looks like a mount point but is not one, and a wrong signature."""
    for name in dir(hook):  # Methods that were set on the instance, too.
        if name.startswith("_") or (hasattr(Hook, name) and name not in points):
            continue
        if name in points:
            _check_signature(hook, points[name])
        # Static, since a property may compute something that is not there yet.
        elif callable(inspect.getattr_static(hook, name, 0)) and _looks_like_point(name, points):
            hint = suggestion(name, peers.POINTS, points)
            raise HookError(
                f"{kind_of(hook)}.{name}: no such mount point.{hint} 'hookloop points' lists "
                "all; a method that is not a mount point begins with another word."
            )


def _looks_like_point(name: str, points: PointTable) -> bool:
    # With a misspelled prefix (`befor_run`, `aftertrain_iter`) it would pass for an ordinary method
    # and never be called.
    return name.startswith(("before_", "after_", "on_")) or bool(
        get_close_matches(name, points, 1, 0.85)
    )


def _check_signature(hook: Hook, point: Point) -> None:
    method = method_of(hook, point.name)
    if method is None:
        return
    if inspect.iscoroutinefunction(method):  # It would be called, and never run.
        raise HookError(f"{kind_of(hook)}.{point.name} is a coroutine: hooks are plain functions.")
    if inspect.isgeneratorfunction(method) or inspect.isasyncgenfunction(method):  # Likewise.
        raise HookError(
            f"{kind_of(hook)}.{point.name} is a generator: without its yield it is a plain "
            "function, which runs when it is called."
        )
    try:
        signature = inspect.signature(method)
    except ValueError:  # Some builtins have none; the first call will show.
        return
    try:
        signature.bind(None, *point.args)
    except TypeError as error:
        where = hook.name if isinstance(hook, FunctionHook) else f"{kind_of(hook)}.{point.name}"
        raise HookError(
            f"{where} has the signature {signature}, but the mount point calls "
            f"{point.signature}: {error}."
        ) from error


def check_every(hook: Hook, points: PointTable) -> None:
    """Reject an interval that could never have an effect at any point of the hook."""
    for point in points.values():
        own: Every | None = getattr(method_of(hook, point.name), "every", None)
        if own and not own.fits(point.clock, ahead=point.ahead):
            counts = f"counts {point.clock}" if point.clock else "has no counter"
            if own.unit in COUNTED:
                counts = f"is not where {own.unit} are counted: use after_train_iter"
            raise HookError(f"{hook.name}: '{own}' cannot limit {point.name}, which {counts}.")
    if hook.every is None:
        return
    try:
        interval = Every.parse(hook.every)
    except ValueError as error:
        raise HookError(f"{kind_of(hook)}.every: {error}") from error
    if not any(interval_at(hook, points[name]) for name in acts_at(hook, points)):
        raise HookError(
            f"{kind_of(hook)}.every = '{interval}' limits nothing: the hook acts at "
            f"{', '.join(acts_at(hook, points)) or 'no point'}."
        )


# --- all hooks together --------------------------------------------------------------------------

Acting = Sequence[tuple[Hook, list[str]]]
"""The hooks in their order, each with the points at which it acts."""


def check_names(hooks: Sequence[Hook]) -> None:
    """Reject two hooks with the same name."""
    seen: dict[str, Hook] = {}
    for hook in hooks:
        if hook.name in seen:
            kinds = f"{kind_of(seen[hook.name])} and {kind_of(hook)}"
            raise HookError(
                f"Two hooks are named '{hook.name}' ({kinds}): name one of them, "
                f"{kind_of(hook)}(...).named('{hook.name}_2'), or give hooks as a mapping from "
                "names.",
                hook.name,
            )
        seen[hook.name] = hook


def check_owners(hooks: Sequence[Hook]) -> None:
    """Reject two hooks that both do what one hook of a run may do."""
    owners: dict[str, Hook] = {}
    for hook in hooks:
        if isinstance(hook.owns, str):  # Each letter would be taken for a word.
            raise HookError(f"{kind_of(hook)}.owns is text: write ({hook.owns!r},).", hook.name)
        for what in hook.owns:
            other = owners.setdefault(what, hook)
            if other is not hook:
                raise HookError(
                    f"The hooks '{other.name}' ({kind_of(other)}) and '{hook.name}' "
                    f"({kind_of(hook)}) both own the {what}, which only one hook of a run can: "
                    "leave one out. A default hook is left out with default_hooks={'...': None}.",
                    hook.name,
                )


def matches(first: str, second: str) -> bool:
    """Return whether two names, either of which may be a pattern, can mean the same metric.

    >>> matches("val/accuracy", "val/*"), matches("train/loss", "val/loss")
    (True, False)
    """
    return first == second or fnmatchcase(first, second) or fnmatchcase(second, first)


def check_reads_and_writes(acting: Acting, produced: Collection[str]) -> None:
    """Reject a reader of something that nothing writes, or that is written only after it.

    Args:
        acting: The hooks in order, with their points.
        produced: Names and patterns that the engine itself writes.
    """
    for position, (reader, points) in enumerate(acting):
        before = [name for hook, _ in acting[:position] for name in hook.writes]
        for name in reader.reads:
            _check_is_written(reader, name, acting, produced)
            for writer, writer_points in acting[position + 1 :]:
                shared = [point for point in points if point in writer_points]
                late = _written_only_by(writer, name, [*produced, *before])
                if late and shared:
                    raise HookError(
                        f"The hook '{reader.name}' reads '{late}' at {shared[0]} before "
                        f"'{writer.name}', its only writer, has written it: list '{writer.name}' "
                        f"before '{reader.name}', or give '{reader.name}' a priority number above "
                        f"{Priority.parse(writer.priority)}.",
                        reader.name,
                    )


def _check_is_written(reader: Hook, name: str, acting: Acting, produced: Collection[str]) -> None:
    others = [hook for hook, _ in acting if hook is not reader]
    known = [*produced, *(written for hook in others for written in hook.writes)]
    if not any(matches(name, other) for other in known):
        raise MetricError(_describe_unknown(reader.name, name, known), reader.name)


def _written_only_by(writer: Hook, name: str, others: Collection[str]) -> str | None:
    """Return what a hook writes under a name, if nobody writes it before that hook."""
    for written in writer.writes:
        if matches(written, name) and not any(matches(written, other) for other in others):
            return written
    return None


def check_were_written(hooks: Sequence[Hook], phase: str, recorded: Collection[str]) -> None:
    """Reject, after an evaluation, a hook that watches a metric which the evaluation lacks.

    Only now are the names known that a torchmetrics object or a step computes.
    """
    known = [*recorded, *(name for hook in hooks for name in hook.writes)]
    for hook in hooks:
        for name in hook.reads:
            if name.startswith(f"{phase}/") and not any(matches(name, other) for other in known):
                raise MetricError(_describe_unknown(hook.name, name, known))


def _describe_unknown(hook: str, name: str, known: Collection[str]) -> str:
    listed = ", ".join(sorted(set(known))) or "none"
    phase = name.partition("/")[0]
    hint = nearest(name, known)
    if phase in ("val", "test") and not any(other.startswith(f"{phase}/") for other in known):
        hint = f" There is no {phase}_data=."
    return (
        f"The hook '{hook}' watches '{name}', which nothing produces.{hint} "
        f"Known metrics: {listed}. A hook that puts another declares it: writes = ('{name}',)."
    )
