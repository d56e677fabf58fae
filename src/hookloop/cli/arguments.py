"""Arguments that several verbs share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

Verb = Callable[..., object]


def config_and_overrides(function: Verb) -> Verb:
    """Take a config file, or a run directory, and any number of ``key=value``."""
    overrides = click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
    config = click.argument("config", type=click.Path(path_type=Path))
    return config(overrides(function))


def run_directory_of(config: Path) -> Path | None:
    """Return the run that a config argument stands for, if it stands for one."""
    from hookloop.runs.layout import RunDir

    home = config if config.is_dir() else config.parent
    is_written = config.is_dir() or config == RunDir(home).config_file
    return home if is_written and RunDir(home).holds_run() else None
