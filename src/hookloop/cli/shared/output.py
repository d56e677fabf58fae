"""What every command has: ``--json`` for programs, and ``--quiet``.

With ``--json``, the standard output has one JSON value and nothing else: whatever the command, its
hooks or the user's code print goes to the standard error. A command calls `set_result`; `reporting`
writes it when the command has ended.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import click

from hookloop.runs.files import write_text
from hookloop.runs.reading import read_json
from hookloop.runs.records import to_json

KEY = "hookloop.output"
RESULT = "HOOKLOOP_RESULT"
"""The variable in which a launcher names the file for the result of its first rank."""

JSON, QUIET = "--json", "--quiet"


@dataclass
class Output:
    """How a command prints.

    Attributes:
        as_json: Whether the result is printed as JSON.
        is_quiet: Whether only warnings and errors are shown.
        result: What is printed as JSON.
        is_final: Whether it is printed as it is, without the exit code.
    """

    as_json: bool = False
    is_quiet: bool = False
    result: object = None
    is_final: bool = False

    @property
    def flags(self) -> list[str]:
        """The options, for a process that is started to do the same."""
        return [JSON] * self.as_json + [QUIET] * self.is_quiet

    @contextmanager
    def printing(self) -> Iterator[None]:
        """Send what is printed to where it belongs."""
        if self.is_quiet:
            with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
                yield
        elif self.as_json:
            with redirect_stdout(sys.stderr):
                yield
        else:
            yield

    def fail(self, message: str, **more: object) -> None:
        """Add to the result why the command failed."""
        known = self.result if isinstance(self.result, Mapping) and not self.is_final else {}
        self.is_final = False
        self.result = {**known, "error": message, **more}

    def finish(self, code: int) -> None:
        """Print the result, if it is wanted as JSON."""
        if not self.as_json:
            return
        result = self.result if self.result is not None else {}
        if isinstance(result, Mapping) and not self.is_final:
            result = {**result, "exit_code": code}
        place = os.environ.get(RESULT)
        if os.environ.get("RANK", "0") != "0":  # The first rank reports for all.
            return
        if place is None:
            click.echo(to_json(result, indent=2))
        else:
            write_text(Path(place), to_json(result))

    @contextmanager
    def of_ranks(self, folder: Path) -> Iterator[None]:
        """Take over the result of the first of the ranks that are started meanwhile."""
        file = folder / "result.json"
        if not self.as_json:
            yield
            return
        os.environ[RESULT] = str(file)
        try:
            yield
        finally:
            del os.environ[RESULT]
            if file.is_file():
                self.result = read_json(file)


def current_output() -> Output:
    """Return how the current command prints."""
    context = click.get_current_context(silent=True)
    if context is None:
        return Output()
    found = context.meta.setdefault(KEY, Output())
    assert isinstance(found, Output)
    return found


def set_result(result: object, *, as_it_is: bool = False) -> None:
    """Set what ``--json`` prints: mappings, lists, text and numbers.

    Args:
        result: A mapping gets the exit code.
        as_it_is: Whether it is a document of its own, to which nothing is added.
    """
    output = current_output()
    output.result, output.is_final = result, as_it_is


def add_output_options(command: click.Command) -> click.Command:
    """Add ``--json`` and ``--quiet`` to a command, once."""
    taken = {name for parameter in command.params for name in parameter.opts}
    if JSON not in taken:
        command.params.append(_option(JSON, "as_json", "Print the result as JSON, and only that."))
    if QUIET not in taken:
        command.params.append(_option(QUIET, "is_quiet", "Print warnings and errors only."))
    return command


def _option(name: str, attribute: str, text: str) -> click.Option:
    def keep(context: click.Context, parameter: click.Parameter, value: bool) -> None:
        if value:
            setattr(context.meta.setdefault(KEY, Output()), attribute, True)

    return click.Option(
        [name, f"hookloop_{attribute}"],
        is_flag=True,
        expose_value=False,
        callback=keep,
        help=text,
    )
