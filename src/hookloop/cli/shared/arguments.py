"""Arguments that several verbs of the command line share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import click

from hookloop.cli.look.completing import complete_override

Verb = Callable[..., object]

CHOICES = ("best", "last")
"""Checkpoints of a run that are found by what they are."""

ALIASES = "hookloop.aliases"
"""The key under which click keeps the names of ``--alias``, for verbs that start processes."""


def chosen_aliases() -> tuple[str, ...]:
    """Return the names of ``--alias``, for processes that the current command starts."""
    return tuple(click.get_current_context().meta.get(ALIASES, ()))


def config_and_overrides(function: Verb) -> Verb:
    """Add the arguments for a config file or run directory, and any number of ``key=value``."""
    overrides = click.argument(
        "overrides", nargs=-1, metavar="[KEY=VALUE]...", shell_complete=complete_override
    )
    config = click.argument("config", type=click.Path(path_type=Path))
    # click reads the outermost decorator first, so CONFIG comes before the overrides.
    return aliases(config(overrides(function)))


class _Checkpoint(click.Path):
    """``best``, ``last``, or a file."""

    name = "best|last|FILE"

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str | bytes | os.PathLike[str]:
        """Return one of the two words as it is, and a file as a path."""
        return value if value in CHOICES else super().convert(value, param, ctx)


def checkpoint_option(default: str) -> Callable[[Verb], Verb]:
    """Add the option ``--checkpoint``.

    Args:
        default: What is loaded without it, for the help.
    """
    return click.option(
        "--checkpoint",
        type=_Checkpoint(exists=True, path_type=Path),
        metavar="best|last|FILE",
        help=f"What to load: best or last of the run, or a file; {default}.",
    )


def aliases(function: Verb) -> Verb:
    """Add the option ``--alias``: foreign packages to be imported from our dialects."""
    return _dialect_option(
        "alias",
        "Let files import packages that are not installed: this dialect stands in for them.",
    )(function)


def grafts(function: Verb) -> Verb:
    """Add the option ``--graft``: installed packages under which our engine is put."""
    return _dialect_option(
        "graft", "Put hookloop's engine under this dialect's package, which must be installed."
    )(function)


def _dialect_option(kind: Literal["alias", "graft"], text: str) -> Callable[[Verb], Verb]:
    def install(context: click.Context, parameter: click.Parameter, names: tuple[str, ...]) -> None:
        if not names:
            return
        # Imported here, so that --help does not wait for torch.
        from hookloop import dialects
        from hookloop.errors import HookError

        try:
            change = dialects.alias(*names) if kind == "alias" else dialects.graft(*names)
        except HookError as error:
            raise click.BadParameter(str(error), context, parameter) from error
        # It changes the imports of the whole process, which may go on after this command.
        context.call_on_close(change.undo)
        if kind == "alias":
            context.meta[ALIASES] = names

    return click.option(
        f"--{kind}",
        multiple=True,
        metavar="DIALECT",
        expose_value=False,
        callback=install,
        help=text,
    )


def run_directory_of(config: Path) -> Path | None:
    """Return the run directory that a config argument stands for, or None for a plain config."""
    from hookloop.runs.layout import RunDir

    home = config if config.is_dir() else config.parent
    is_written = config.is_dir() or config == RunDir(home).config_file
    return home if is_written and RunDir(home).holds_run() else None
