"""``hookloop run``: run a Python script, with our engine behind the packages that it imports."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import click

from hookloop.cli.arguments import aliases, grafts
from hookloop.cli.output import set_result
from hookloop.cli.report import reporting


@click.command(
    "run",
    short_help="Run a Python script, with aliases or grafts of foreign packages.",
    # Options after SCRIPT belong to the script.
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@aliases
@grafts
@click.argument("script", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@reporting
def command(script: Path, arguments: tuple[str, ...]) -> int:
    """Run SCRIPT as ``python SCRIPT ...`` would.

    With --alias, scripts written for a foreign package run where that package is not installed:
    hookloop run --alias DIALECT train.py --work-dir out

    With --graft, scripts of a package that is installed train with hookloop's engine under it:
    hookloop run --graft DIALECT tools/train.py config.py
    """
    # What `python SCRIPT` does: the script sees its own arguments, and imports its neighbours.
    set_result({"script": str(script)})
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.parent.resolve()))
    try:
        runpy.run_path(str(script), run_name="__main__")
    except ModuleNotFoundError as error:
        from hookloop.dialects import alias_hint

        if hint := alias_hint(error):
            error.add_note(hint)
        raise
    return 0
