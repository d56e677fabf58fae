"""`create_hooks`: make the hooks of an emloop config, as emloop does."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import cast

from hookloop.errors import HookError, nearest
from hookloop_dialects.emloop.catalogue import CATALOGUE
from hookloop_dialects.emloop.hooks.training_trace import TrainingTrace

_log = logging.getLogger()  # emloop logs with the root logger.


def create_hooks(
    config: Mapping[str, object],
    model: object = None,
    dataset: object = None,
    output_dir: str | None = None,
) -> list[object]:
    """Make the hooks that a config lists, each with the model, the data set and the directory.

    Args:
        config: Its entry ``hooks`` lists names, or mappings from one name to arguments.
        model: Passed to every hook.
        dataset: Passed to every hook.
        output_dir: Passed to every hook.

    Returns:
        Hooks for a `Trainer`; a `TrainingTrace` comes last if the config lists none.
    """
    hooks: list[object] = []
    for entry in cast("Sequence[object]", config.get("hooks") or ()):
        name, arguments = _read(entry)
        # The config's own arguments come last, so they win.
        supplied = {"dataset": dataset, "model": model, "output_dir": output_dir}
        hooks.append(find(name)(**supplied | arguments))
    # emloop always adds it, and warns. Without a directory there is nowhere to write the file.
    if not any(isinstance(hook, TrainingTrace) for hook in hooks) and output_dir is not None:
        _log.warning("A TrainingTrace was added to the hooks; list it to avoid this warning.")
        hooks.append(TrainingTrace(output_dir=output_dir))
    return hooks


def find(name: str) -> Callable[..., object]:
    """Return the class of a hook: one of emloop's by its name, any other by module and name."""
    # The catalogue first: its rows include names with dots, such as emloop_tensorflow's.
    path = CATALOGUE.get(name)
    if path is None and "." not in name:
        raise HookError(
            f"emloop has no hook '{name}'.{nearest(name, CATALOGUE)} Write a hook of your own with "
            f"its module: my_project.hooks.{name}."
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
            f"hooks: {entry!r} is not a hook: write a name, or one name with its arguments."
        )
    ((name, arguments),) = entry.items()
    if arguments is None:  # YAML reads a name with a colon and nothing after it like this.
        _log.warning("The hook '%s' has a colon and no arguments.", name)
    return str(name), dict(arguments or {})
