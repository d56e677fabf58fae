"""What is refused about a hook before training starts, each with the way to mend it."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from hookloop import peers
from hookloop.core.hook import (
    FunctionHook,
    Hook,
    Priority,
    acts_at,
    interval_at,
    kind_of,
    method_of,
    priority_of,
)
from hookloop.core.points import Point, PointTable
from hookloop.errors import HookError, MetricError, nearest
from hookloop.every import Every
from hookloop.peers import suggestion


def check_hook(hook: Hook, points: PointTable) -> None:
    """Refuse what can be told to be wrong with a hook by itself."""
    check_is_hook(hook)
    priority_of(hook)
    check_words(hook)
    check_methods(hook, points)
    check_every(hook, points)


def check_is_hook(hook: object) -> None:
    """Refuse what is no hook."""
    if isinstance(hook, Hook):
        return
    if isinstance(hook, type) and issubclass(hook, Hook):
        raise HookError(f"{hook.__name__} is a class, not a hook: write {hook.__name__}().")
    if isinstance(hook, str):
        raise HookError(f"'{hook}' is a name, not a hook: write {hook}(...).")
    raise HookError(
        f"{hook!r} is no hook: subclass hookloop.Hook, or attach a function with "
        "@trainer.on('after_train_iter')."
    )


def check_words(hook: Hook) -> None:
    """Refuse text in place of a list, which would be read by letters, and an unknown policy."""
    for attribute in ("reads", "writes"):
        if isinstance(named := getattr(hook, attribute), str):
            raise HookError(f"{kind_of(hook)}.{attribute} is a tuple of names: write ('{named}',).")
    if hook.on_error not in ("raise", "disable"):
        raise HookError(f"{kind_of(hook)}.on_error is 'raise' or 'disable', not {hook.on_error!r}.")


def check_names(hooks: Sequence[Hook]) -> None:
    """Refuse two hooks of one name."""
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


def check_methods(hook: Hook, points: PointTable) -> None:
    """Refuse a method that looks like a mount point and is none, and a wrong signature."""
    for name in dir(hook):
        if name.startswith("_") or (hasattr(Hook, name) and name not in points):
            continue
        if name in points:
            _check_signature(hook, points[name])
        # Static, since a property may compute something that is not there yet.
        elif callable(inspect.getattr_static(hook, name, 0)) and _looks_like_point(name, points):
            hint = suggestion(name, peers.POINTS, points)
            raise HookError(
                f"{kind_of(hook)}.{name}: no such mount point.{hint} 'hookloop points' lists "
                "all; a method that is no mount point begins with another word."
            )


def _looks_like_point(name: str, points: PointTable) -> bool:
    # `befor_run`, `aftertrain_iter`: a misspelt prefix would else pass for a method of the hook's.
    return name.startswith(("before_", "after_", "on_")) or bool(
        get_close_matches(name, points, 1, 0.85)
    )


def _check_signature(hook: Hook, point: Point) -> None:
    method = method_of(hook, point.name)
    if method is None:
        return
    if inspect.iscoroutinefunction(method):
        raise HookError(f"{kind_of(hook)}.{point.name} is a coroutine: hooks are plain functions.")
    try:
        signature = inspect.signature(method)
    except ValueError:  # Some builtins have none; the first call will tell.
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
    """Refuse a schedule that no point of the hook could ever obey."""
    for point in points.values():
        own: Every | None = getattr(method_of(hook, point.name), "every", None)
        if own and not (point.clock if own.unit == "seconds" else point.clock == own.unit):
            raise HookError(
                f"{hook.name}: '{own}' cannot limit {point.name}, which "
                + (f"counts {point.clock}." if point.clock else "has no counter.")
            )
    if hook.every is None:
        return
    try:
        schedule = Every.parse(hook.every)
    except ValueError as error:
        raise HookError(f"{kind_of(hook)}.every: {error}") from error
    if not any(interval_at(hook, points[name]) for name in acts_at(hook, points)):
        raise HookError(
            f"{kind_of(hook)}.every = '{schedule}' limits nothing: the hook acts at "
            f"{', '.join(acts_at(hook, points)) or 'no point'}."
        )


Acting = Sequence[tuple["Hook", list[str]]]
"""The hooks in their order, each with the points at which it acts."""


def matches(one: str, other: str) -> bool:
    """Tell whether two names, either of which may be a pattern, can mean the same metric.

    >>> matches("val/accuracy", "val/*"), matches("train/loss", "val/loss")
    (True, False)
    """
    return one == other or fnmatchcase(one, other) or fnmatchcase(other, one)


def check_contract(acting: Acting, produced: Collection[str]) -> None:
    """Refuse a reader of something that nothing writes, or that is written only after it.

    Args:
        acting: The hooks in order, with their points.
        produced: Names and patterns that the engine itself writes.
    """
    for place, (reader, points) in enumerate(acting):
        before = [name for hook, _ in acting[:place] for name in hook.writes]
        for name in reader.reads:
            _check_exists(reader, name, acting, produced)
            for writer, theirs in acting[place + 1 :]:
                shared = [point for point in points if point in theirs]
                late = _only_written_by(writer, name, [*produced, *before])
                if late and shared:
                    raise HookError(
                        f"The hook '{reader.name}' reads '{late}' at {shared[0]} before "
                        f"'{writer.name}', its only writer, has written it: list '{writer.name}' "
                        f"before '{reader.name}', or give '{reader.name}' a priority number above "
                        f"{Priority.parse(writer.priority)}.",
                        reader.name,
                    )


def _check_exists(reader: Hook, name: str, acting: Acting, produced: Collection[str]) -> None:
    known = [*produced, *(w for hook, _ in acting if hook is not reader for w in hook.writes)]
    if not any(matches(name, other) for other in known):
        raise MetricError(_unknown(reader.name, name, known), reader.name)


def _only_written_by(writer: Hook, name: str, others: Collection[str]) -> str | None:
    """Return what a hook writes under a name that is read, if nobody else writes it before."""
    for written in writer.writes:
        if matches(written, name) and not any(matches(written, other) for other in others):
            return written
    return None


def check_written(hooks: Sequence[Hook], phase: str, recorded: Collection[str]) -> None:
    """After an evaluation: refuse a hook that watches a metric which did not turn up in it."""
    known = [*recorded, *(name for hook in hooks for name in hook.writes)]
    for hook in hooks:
        for name in hook.reads:
            if name.startswith(f"{phase}/") and not any(matches(name, other) for other in known):
                raise MetricError(_unknown(hook.name, name, known))


def _unknown(hook: str, name: str, known: Collection[str]) -> str:
    listed = ", ".join(sorted(known)) or "none"
    phase = name.partition("/")[0]
    hint = nearest(name, known)
    if phase in ("val", "test") and not any(one.startswith(f"{phase}/") for one in known):
        hint = f" There is no {phase}_data=."
    return (
        f"The hook '{hook}' watches '{name}', which nothing produces.{hint} "
        f"Known metrics: {listed}. A hook that puts another declares it: writes = ('{name}',)."
    )
