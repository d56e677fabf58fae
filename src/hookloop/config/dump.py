"""The effective config as plain YAML, which can be run again as it is."""

from __future__ import annotations

import os
from pathlib import Path
from types import FunctionType
from typing import cast

from hookloop.config.blueprint import import_path
from hookloop.config.other_keys import other_keys
from hookloop.config.parts.part import REFERENCE, TYPE
from hookloop.config.reading.interpolate import escape
from hookloop.config.tree import Config, Key, spell
from hookloop.errors import ConfigError, Problem
from hookloop.runs import plain_yaml
from hookloop.runs.layout import default_path
from hookloop.secret import Secret, redact
from hookloop.trainer.settings import SETTINGS

NOT_KEPT = ("run_dir", "resume")
"""Keys that belong to one run only: running its config again is another run."""


def dump(config: Config, run_dir: str | Path | None = None) -> str:
    """Return the effective config as YAML text."""
    return plain_yaml.dump(effective(config, run_dir))


def effective(config: Config, run_dir: str | Path | None = None) -> dict[str, object]:
    """Return the effective config as plain values.

    Classes and functions are written as their path. Secrets and values from the environment are
    written as references. The directories of the project's modules are added, relative to the run
    directory, so that the written config finds them again.

    Args:
        config: The config.
        run_dir: The directory into which it will be written.
    """
    kept = {name: value for name, value in config.tree.items() if name not in NOT_KEPT}
    # A directory that is not made yet: only its depth matters for relative paths.
    home = Path(os.path.abspath(run_dir if run_dir is not None else default_path()))
    plain = {name: _plain(config, (name,), value) for name, value in kept.items()}
    for path in (*other_keys(), *(path for path, one in SETTINGS.items() if one.removes)):
        argument, _, name = path.partition(".")
        holder = cast("dict[str, object]", plain.get(argument) or {}) if name else plain
        if (key := name or argument) in holder:
            holder[key] = _without_removed(holder[key])
    plain["import_path"] = _import_path(config, home)
    return plain


def as_read(config: Config) -> dict[str, object]:
    """Return a config as it was read, with bases, overrides and references in place.

    Unlike `effective`, it has the keys of one run only, and nothing is added. Secrets and values
    from the environment stay references.
    """
    return {name: _plain(config, (name,), value) for name, value in config.tree.items()}


def _relative_to(home: Path, directory: Path) -> str:
    """Return a directory relative to a run of the same project, so that both can move together."""
    project = Path.cwd()
    # Within a project, paths are relative: a run may move to another machine with its project.
    is_one_project = home.is_relative_to(project) and directory.is_relative_to(project)
    if is_one_project or home.is_relative_to(directory):
        return os.path.relpath(directory, home)
    return str(directory)


def _without_removed(value: object) -> object:
    """Return a value without its removed entries: the written config has no base to remove from."""
    if isinstance(value, dict) and TYPE not in value:
        return {name: item for name, item in value.items() if item is not None}
    return [item for item in value if item is not None] if isinstance(value, list) else value


def _import_path(config: Config, home: Path) -> list[str]:
    entries = config.tree.get("import_path")
    keys: list[Key] = [("import_path",)]
    if isinstance(entries, list):
        keys = [("import_path", index) for index in range(len(entries))]
    written = {}
    for key in keys:
        if (reference := config.references.get(key)) is not None:
            directory = (config.path.parent / str(reference.value)).resolve()
            is_relative = not Path(str(reference.value)).is_absolute()
            start = f"{_relative_to(home, config.path.parent)}/" if is_relative else ""
            written[directory] = f"{start}{reference}"
    return [written.get(entry) or _relative_to(home, entry) for entry in import_path(config)]


def _plain(config: Config, key: Key, value: object) -> object:
    reference = config.references.get(key)
    # Code may have set another value since, which is then what the run really used.
    if reference is not None and _is_same(value, reference.value):
        return reference
    # An object of a Python file is written as the path where it can be imported.
    if id(value) in config.origins:
        return {REFERENCE: config.origins[id(value)]}
    if isinstance(value, dict):
        return {name: _plain(config, (*key, name), item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(config, (*key, index), item) for index, item in enumerate(value)]
    if value is None or isinstance(value, bool | int | float | str):
        return _escaped(value) if isinstance(value, str) else value
    if isinstance(value, FunctionType | type):
        return f"{value.__module__}.{value.__qualname__}"
    message = (
        f"{spell(key)}: a {type(value).__name__} cannot be written down, so the run could not be "
        "resumed: describe it with 'type'."
    )
    raise ConfigError([Problem(message, config.where(key))])


def _escaped(text: str) -> str:
    # Escaped, because text with ${ in it would be read back as a reference.
    return redact(text if isinstance(text, Secret) else escape(text))


def _is_same(one: object, other: object) -> bool:
    # With the type, because 1, 1.0 and True are equal to Python.
    return one is other or (type(one) is type(other) and one == other)
