"""`create_hooks`: from the ``hooks`` of one of emloop's configs to hooks, as emloop makes them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import cast

from hookloop.dialects.emloop.catalogue import CATALOGUE
from hookloop.dialects.emloop.hooks.training_trace import TrainingTrace
from hookloop.errors import HookError, nearest

_log = logging.getLogger("emloop")


def create_hooks(
    config: Mapping[str, object],
    model: object = None,
    dataset: object = None,
    output_dir: str | None = None,
) -> list[object]:
    """Make the hooks that a config lists, each with the model, the data set and the directory.

    Args:
        config: With ``hooks``: names, or mappings from one name to arguments.
        model: Given to every hook.
        dataset: Given to every hook.
        output_dir: Given to every hook.

    Returns:
        Hooks for a `Trainer`; a `TrainingTrace` comes last if the config names none.
    """
    hooks: list[object] = []
    for entry in cast("Sequence[object]", config.get("hooks") or ()):
        name, arguments = _read(entry)
        given = {"dataset": dataset, "model": model, "output_dir": output_dir, **arguments}
        hooks.append(find(name)(**given))
    if not any(isinstance(hook, TrainingTrace) for hook in hooks) and output_dir is not None:
        _log.warning("A TrainingTrace was added to the hooks; list it to avoid this warning.")
        hooks.append(TrainingTrace(output_dir=output_dir))
    return hooks


def find(name: str) -> Callable[..., object]:
    """Find the class of a hook: one of emloop's by its name, any other by module and name."""
    path = CATALOGUE.get(name)
    if path is None and "." not in name:
        raise HookError(
            f"emloop has no hook '{name}'.{nearest(name, CATALOGUE)} A hook of your own is named "
            f"with its module: my_project.hooks.{name}."
        )
    module, kind = path.split(":") if path is not None else name.rsplit(".", 1)
    found = getattr(import_module(module), kind, None)
    if not callable(found):
        raise HookError(f"The module '{module}' has no hook '{kind}'.")
    return cast("Callable[..., object]", found)


def _read(entry: object) -> tuple[str, dict[str, object]]:
    if isinstance(entry, str):
        return entry, {}
    if not isinstance(entry, Mapping) or len(entry) != 1:
        raise HookError(
            f"hooks: {entry!r} is no hook: write a name, or one name with its arguments."
        )
    ((name, arguments),) = entry.items()
    if arguments is None:
        _log.warning("The hook '%s' has a colon and no arguments.", name)
    return str(name), dict(arguments or {})
