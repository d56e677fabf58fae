"""The effective config as plain YAML, which can be run again as it is."""

from __future__ import annotations

import os
from pathlib import Path
from types import FunctionType

from hookloop.config.blueprint import import_path
from hookloop.config.parts.part import REFERENCE, TYPE
from hookloop.config.reading.interpolate import escape
from hookloop.config.tree import Config, Key, spell
from hookloop.errors import ConfigError, Fault
from hookloop.runs import plain_yaml
from hookloop.runs.layout import default_path

NOT_KEPT = ("run_dir", "resume")
"""Keys that say where one run was; running it again is another run."""

REMOVABLE = (
    "hooks", "custom_hooks", "metrics", "step", "val_data", "test_data", "optimizer", "schedule",
)  # fmt: skip
"""Keys that map names to things which null takes away."""


def dump(config: Config, run_dir: str | Path | None = None) -> str:
    """Return the effective config as YAML text."""
    return plain_yaml.dump(effective(config, run_dir))


def effective(config: Config, run_dir: str | Path | None = None) -> dict[str, object]:
    """Return the effective config as plain values.

    Classes and functions are written as their path. The directories of the project's modules are
    added, as seen from the run directory, so that the written config finds them again.

    Args:
        config: The config.
        run_dir: Where it will be written.
    """
    kept = {name: value for name, value in config.tree.items() if name not in NOT_KEPT}
    home = Path(os.path.abspath(run_dir if run_dir is not None else default_path()))
    plain = {name: _plain(config, (name,), value) for name, value in kept.items()}
    plain |= {name: _without_removed(plain[name]) for name in REMOVABLE if name in plain}
    plain["import_path"] = [_seen_from(home, entry) for entry in import_path(config)]
    return plain


def _seen_from(home: Path, directory: Path) -> str:
    """Write a directory relative to a run in the same project, so that they can move together."""
    project = Path.cwd()
    is_one_project = home.is_relative_to(project) and directory.is_relative_to(project)
    if is_one_project or home.is_relative_to(directory):
        return os.path.relpath(directory, home)
    return str(directory)


def _without_removed(value: object) -> object:
    """Leave out names that null took away: what is written has nothing left to remove."""
    if isinstance(value, dict) and TYPE not in value:
        return {name: item for name, item in value.items() if item is not None}
    return [item for item in value if item is not None] if isinstance(value, list) else value


def _plain(config: Config, key: Key, value: object) -> object:
    if id(value) in config.origins:
        return {REFERENCE: config.origins[id(value)]}
    if isinstance(value, dict):
        return {name: _plain(config, (*key, name), item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(config, (*key, index), item) for index, item in enumerate(value)]
    if isinstance(value, str):
        return escape(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, FunctionType | type):
        return f"{value.__module__}.{value.__qualname__}"
    message = (
        f"{spell(key)}: a {type(value).__name__} cannot be written down, so the run could not be "
        "resumed: describe it with 'type'."
    )
    raise ConfigError([Fault(message, config.where(key))])
