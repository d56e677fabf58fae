"""``hookloop schema``: print a JSON Schema of configs, for editors."""

from __future__ import annotations

import json

import click

from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import reporting


@click.command("schema", short_help="Print a JSON Schema of configs, for editors.")
@reporting
def command() -> int:
    """Print the JSON Schema of a config: its keys, hooks and their arguments, with what they mean.

    \b
    An editor uses the file that is named in the first line of a config:
    # yaml-language-server: $schema=hookloop.schema.json
    """  # noqa: D301 - click keeps the lines after \b as they are
    from hookloop.config.json_schema import make_schema

    schema = make_schema()
    set_result(schema, as_it_is=True)
    click.echo(json.dumps(schema, indent=1))
    return 0
