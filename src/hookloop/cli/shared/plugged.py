"""Commands of other packages, found through the entry points ``hookloop.commands``."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import click

from hookloop.errors import HookloopError
from hookloop.plug_ins import misfit

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "hookloop.commands"

OURS = {"board": ("hookloop[board]", "Show runs, live and compared, on a local web page.")}
"""Verbs that have a package of their own, each with what to install and what it does."""


@cache
def plugged_verbs() -> dict[str, EntryPoint]:
    """Return the verbs of installed packages; nothing of them is imported."""
    from importlib.metadata import entry_points  # It takes as long as all the rest of the start.

    found = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    return {entry.name: entry for entry in found}


def plugged_command(verb: str) -> click.Command | None:
    """Import the command of a package; None if no package has it.

    A verb of ours that is not installed says what to install, and one that cannot be used, why.
    """
    entry = plugged_verbs().get(verb)
    if entry is None:
        if verb not in OURS:
            return None
        install, does = OURS[verb]
        needs = f"pip install '{install}'"
        return _stand_in(
            verb,
            f"{does[:-1]} ({needs}).",
            HookloopError(f"hookloop {verb} is in a package of its own: {needs}"),
        )
    if (problem := misfit(entry)) is not None:
        return _stand_in(verb, "Its version does not fit.", HookloopError(problem))
    try:
        command = entry.load()
    except Exception as error:  # noqa: BLE001 - code of another package, reported when it is used
        return _stand_in(verb, "It cannot be loaded.", _broken(entry, error))
    if not isinstance(command, click.Command):
        wrong = TypeError(f"'{entry.value}' is a {type(command).__name__}, not a click.Command")
        return _stand_in(verb, "It cannot be loaded.", _broken(entry, wrong))
    return command


def _broken(entry: EntryPoint, error: Exception) -> HookloopError:
    source = entry.dist.name if entry.dist is not None else entry.value
    failure = HookloopError(
        f"The command '{entry.name}' of {source} cannot be loaded: {type(error).__name__}: {error}"
    )
    failure.__cause__ = error
    return failure


def _stand_in(verb: str, does: str, problem: HookloopError) -> click.Command:
    """Return a command that takes anything and says why it does nothing."""
    from hookloop.cli.shared.report import reporting

    @click.command(
        verb,
        short_help=does,
        help=f"{problem}.",
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="...")
    @reporting
    def command(arguments: tuple[str, ...]) -> int:
        raise problem

    return command
