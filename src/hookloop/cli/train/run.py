"""``hookloop run``: run a Python script, with our engine behind the packages that it imports."""

from __future__ import annotations

import os
import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

import click

from hookloop.cli.shared.arguments import aliases, grafts
from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import reporting


@click.command(
    "run",
    short_help="Run a Python script, with aliases or grafts of foreign packages.",
    # Options after SCRIPT belong to the script.
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@aliases
@grafts
@click.option("-m", "is_module", is_flag=True, help="SCRIPT is the name of a module.")
@click.argument("script", type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@reporting
def command(is_module: bool, script: Path, arguments: tuple[str, ...]) -> int:
    """Run SCRIPT as ``python SCRIPT ...`` would, or ``python -m SCRIPT ...`` with -m.

    With --alias, scripts written for a foreign package run where that package is not installed.
    With --graft, scripts of a package that is installed train with hookloop's engine under it.
    """
    set_result({"script": str(script)})
    try:
        if is_module:
            _run_module(str(script), arguments)
        else:
            _run_file(script, arguments)
    except ModuleNotFoundError as error:
        from hookloop.dialects import alias_hint

        if hint := alias_hint(error):
            error.add_note(hint)
        raise
    return 0


def _run_file(script: Path, arguments: tuple[str, ...]) -> None:
    """Do what `python SCRIPT` does: it sees its own arguments, and imports its neighbours."""
    if not script.is_file():
        raise click.BadParameter(f"File '{script}' does not exist.", param_hint="'SCRIPT'")
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.parent.resolve()))
    runpy.run_path(str(script), run_name="__main__")


def _run_module(name: str, arguments: tuple[str, ...]) -> None:
    """Do what `python -m NAME` does: modules are found from the working directory, too."""
    sys.path.insert(0, os.getcwd())
    if not _exists(name):
        raise click.BadParameter(f"There is no module '{name}'.", param_hint="'SCRIPT'")
    sys.argv = [name, *arguments]
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def _exists(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError as error:
        # Of another module: a package on the way there failed to import it.
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        return False
