"""``hookloop new``: make a project that trains and passes its own test."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

import click

from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_text, reporting
from hookloop.errors import HookloopError
from hookloop.runs.files import write_text
from hookloop.version import VERSION

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

ENDING = ".txt"
"""What a template's name ends in, so that no tool takes it for code of this package."""

PACKAGE = "PACKAGE"
"""What stands in a template's path for the package of a dialect."""

RENAMED = {"gitignore": ".gitignore"}


@click.command("new", short_help="Make a project that trains and passes its own test.")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--name", help="The name of the project; by default that of the directory.")
@click.option(
    "--dialect",
    metavar="SYSTEM",
    help="Make a package with a dialect instead: hooks of this system run in hookloop.",
)
@reporting
def command(directory: Path, name: str | None, dialect: str | None) -> int:
    """Make a project in DIRECTORY: model, data, config, a hook, tests.

    It trains in seconds, on random data. A directory that is not empty is rejected. With --dialect,
    it is a package that lets hooks of another system run, with a test.
    """
    if dialect is None:
        called = _checked(name if name is not None else directory.resolve().name)
    else:
        called = _checked_system(dialect)
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        what = "is not empty" if directory.is_dir() else "is a file"
        raise HookloopError(f"'{directory}' {what}: give a directory that does not exist yet.")
    made = []
    values = {"name": called, "version": VERSION, "series": VERSION.rpartition(".")[0]}
    folder = "new_project" if dialect is None else "new_dialect"
    for template, text in _templates(files("hookloop.cli.train") / folder):
        path = template.replace(PACKAGE, f"hookloop_{called}")
        target = directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        write_text(target, Template(text).substitute(values))
        made.append(path)
    set_result({"directory": str(directory), "name": called, "files": sorted(made)})
    first = "hookloop train config.yaml" if dialect is None else "pip install -e ."
    print_text(f"{directory} has {', '.join(sorted(made))}.\n  cd {directory} && {first}\n  pytest")
    return 0


def _checked(name: str) -> str:
    """Reject a name that a package cannot have; it becomes part of files and directories."""
    if re.fullmatch(r"[A-Za-z0-9]([\w.-]*[A-Za-z0-9])?", name, re.ASCII) is None:
        raise HookloopError(
            f"'{name}' cannot be the name of a project: write letters, digits, '-', '_' and '.', "
            "with --name."
        )
    return name


def _checked_system(name: str) -> str:
    """Reject a name that a Python package cannot have."""
    if re.fullmatch(r"[a-z][a-z0-9_]*", name, re.ASCII) is None:
        raise HookloopError(
            f"'{name}' cannot be the name of a dialect: write the name of the package whose hooks "
            "it runs, in small letters."
        )
    return name


def _templates(folder: Traversable, below: str = "") -> Iterator[tuple[str, str]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _templates(entry, f"{below}{entry.name}/")
        elif entry.name.endswith(ENDING):
            name = entry.name.removesuffix(ENDING)
            yield below + RENAMED.get(name, name), entry.read_text(encoding="utf-8")
