"""``hookloop points``: the table of mount points."""

from __future__ import annotations

import click

from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import reporting
from hookloop.cli.shared.table import show_table


@click.command("points", short_help="List the mount points.")
@reporting
def command() -> int:
    """List the mount points in the order of a run, with the signature of a hook's method."""
    from hookloop.engine.points import POINTS

    set_result([{"name": p.name, "signature": p.signature, "doc": p.doc} for p in POINTS])
    show_table(
        ("method of a hook", "fired when"),
        [(p.signature, p.doc) for p in POINTS],
        wide=("fired when",),
    )
    return 0
