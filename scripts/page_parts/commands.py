"""The page of commands, with all their options, as click knows them."""

from __future__ import annotations

import inspect
from collections.abc import Iterable

import click

from hookloop.cli.main import COMMANDS, VERBS, cli
from hookloop.cli.shared.examples import EXAMPLES
from hookloop.cli.shared.output import JSON, QUIET
from hookloop.cli.shared.plugged import OURS

PAGE = """\
# Commands and options

Every command with every option. [Command line](../command-line.md) explains them, with examples;
`hookloop COMMAND --help` prints the same. Each command also has `{json}` (one JSON value on the
standard output, everything else on the standard error), `{quiet}` (warnings and errors only),
`--traceback` (the full traceback of an error) and `--help`.

| command | |
|---|---|
{rows}

{entries}
"""

ENTRY = """\
## {verb}

```text
{usage}
```

{help}

{examples}{options}{words}"""


def page() -> str:
    """Write the page of all commands."""
    context = click.Context(cli, info_name="hookloop")
    found = {verb: cli.get_command(context, verb) for verb in VERBS if verb not in OURS}
    commands = {verb: command for verb, command in found.items() if command is not None}
    rows_of = {
        verb: f"| [`{verb}`](#{verb}) | {_escaped(command.get_short_help_str(limit=200))} |"
        for verb, command in commands.items()
    }
    # Those of packages of their own have their options on the page of command lines, so that this
    # page is the same wherever they are not installed.
    rows_of |= {
        verb: f"| [`{verb}`](../command-line.md#{verb}) | {does[:-1]}: `pip install '{install}'`. |"
        for verb, (install, does) in OURS.items()
    }
    entries = [_entry(verb, command, context) for verb, command in commands.items()]
    return PAGE.format(
        json=JSON,
        quiet=QUIET,
        rows="\n".join(rows_of[verb] for verb in VERBS),
        entries="\n\n".join(entries),
    )


def _entry(verb: str, command: click.Command, parent: click.Context) -> str:
    context = click.Context(command, info_name=verb, parent=parent)
    words = COMMANDS.get(verb, "").split()
    also = f"\n\nNot commands, but their error names `{verb}`: {_listed(words)}." if words else ""
    return ENTRY.format(
        verb=verb,
        usage=" ".join(["hookloop", verb, *command.collect_usage_pieces(context)]),
        help=_paragraphs(inspect.cleandoc(command.help or "")),
        examples=_examples(EXAMPLES[verb]),
        options=_options(command, context),
        words=also,
    )


def _examples(lines: tuple[str, ...]) -> str:
    title = "Example" if len(lines) == 1 else "Examples"
    return f"{title}: {_listed(lines)}"


def _options(command: click.Command, context: click.Context) -> str:
    rows = []
    for parameter in command.get_params(context):
        if not isinstance(parameter, click.Option) or parameter.hidden:
            continue
        if parameter.opts[0] in (JSON, QUIET, "--traceback", "--help", "-h"):
            continue
        record = parameter.get_help_record(context)
        assert record is not None
        rows.append(f"| `{_escaped(record[0])}` | {_escaped(record[1])} |")
    return "\n".join(["\n\n| option | |", "|---|---|", *rows]) if rows else ""


def _paragraphs(text: str) -> str:
    """Join the lines of a paragraph; what click must not wrap stays as it is, as a block."""
    shown = []
    for paragraph in text.split("\n\n"):
        lines = paragraph.splitlines()
        if lines and lines[0].strip() == "\b":
            shown.append("\n".join(["```text", *lines[1:], "```"]))
        else:
            shown.append(" ".join(lines).replace("``", "`"))
    return "\n\n".join(shown)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("``", "`")


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)
