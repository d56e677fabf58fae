"""What hooks have changed because of a validation that was asked for: settings and states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hookloop.engine.run import Run

_PLAIN = (bool, int, float, str, type(None))


def settings_now(run: Run) -> dict[str, object]:
    """Return the settings of optimizers, what is requested, and the plain states of hooks.

    A validation leaves weights and random numbers as they are, but hooks may act on what it finds.
    """
    found: dict[str, object] = {
        "stop": run._internals.requests.stop,
        "rewind": run._internals.requests.rewind,
    }
    for name, optimizer in run.optimizers.items():
        kind = "optimizer" if name == "default" else f"optimizers.{name}"
        for number, group in enumerate(optimizer.param_groups):
            settings = {key: value for key, value in group.items() if key != "params"}
            found |= _plain_values(settings, f"{kind}.groups.{number}")
    for hook in run.hooks:
        if hook.takes_part_in_training:
            found |= _plain_values(hook.state_dict(), f"hooks.{hook.name}")
    return found | run._internals.undeclared.marks_of_hooks()


def changed_since(before: Mapping[str, object], run: Run) -> list[str]:
    """Return the names of what differs from `settings_now` before."""
    now = settings_now(run)
    names = dict.fromkeys([*before, *now])
    return [name for name in names if repr(before.get(name)) != repr(now.get(name))]


def _plain_values(tree: object, path: str) -> dict[str, object]:
    return dict(_walk(tree, path))


def _walk(tree: object, path: str) -> Iterator[tuple[str, object]]:
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from _walk(value, f"{path}.{key}")
    elif isinstance(tree, list | tuple) and all(isinstance(one, _PLAIN) for one in tree):
        yield path, list(tree)
    elif isinstance(tree, _PLAIN):
        yield path, tree
