"""The effective config as plain YAML, which can be run again as it is."""

from __future__ import annotations

import os
from pathlib import Path

from hookloop.config.blueprint import import_path
from hookloop.config.reading.interpolate import escape
from hookloop.config.tree import Config
from hookloop.runs import plain_yaml
from hookloop.runs.layout import default_path

NOT_KEPT = ("run_dir", "resume")
"""Keys that say where one run was; running it again is another run."""


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
    plain = {name: _plain(value) for name, value in kept.items()}
    plain["import_path"] = [_seen_from(home, entry) for entry in import_path(config)]
    return plain


def _seen_from(home: Path, directory: Path) -> str:
    """Write a directory relative to a run in the same project, so that they can move together."""
    project = Path.cwd()
    is_one_project = home.is_relative_to(project) and directory.is_relative_to(project)
    if is_one_project or home.is_relative_to(directory):
        return os.path.relpath(directory, home)
    return str(directory)


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, str):
        return escape(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    name = getattr(value, "__qualname__", None)
    return f"{getattr(value, '__module__', '')}.{name}" if name else repr(value)
