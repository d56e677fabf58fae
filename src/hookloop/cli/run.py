"""``hookloop run``: run a Python script, with foreign packages aliased to our dialects."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import click

from hookloop.cli.arguments import aliases
from hookloop.cli.report import reporting


@click.command(
    "run",
    short_help="Run a Python script, with import aliases.",
    # Options after SCRIPT belong to the script.
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@aliases
@click.argument("script", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@reporting
def command(script: Path, arguments: tuple[str, ...]) -> int:
    """Run SCRIPT as ``python SCRIPT ...`` would.

    With --alias, scripts written for a foreign package run where that package is not installed:
    hookloop run --alias DIALECT train.py --work-dir out
    """
    # What `python SCRIPT` does: the script sees its own arguments, and imports its neighbours.
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.parent.resolve()))
    runpy.run_path(str(script), run_name="__main__")
    return 0
