"""``hookloop note``: write a note to a run."""

from __future__ import annotations

from pathlib import Path

import click

from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_text, reporting


@click.command("note", short_help="Write a note to a run.")
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("text", required=False)
@reporting
def command(run: Path, text: str | None) -> int:
    """Replace the note of RUN, the directory of a run, with TEXT; without TEXT, show the note.

    An empty TEXT removes the note. 'hookloop runs' shows notes.
    """
    from hookloop.runs.tags import open_run, read_labels, set_note

    home = open_run(run)
    labels = read_labels(home) if text is None else set_note(home, text)
    set_result({"run": str(run), "tags": list(labels.tags), "note": labels.note})
    print_text(f"{run}: {labels.note or 'no note'}")
    return 0
