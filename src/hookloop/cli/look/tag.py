"""``hookloop tag``: give a run tags to find it by."""

from __future__ import annotations

from pathlib import Path

import click

from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_text, reporting


@click.command("tag", short_help="Give a run tags, or remove them.")
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("tags", nargs=-1)
@click.option("--remove", is_flag=True, help="Remove the tags instead.")
@reporting
def command(run: Path, tags: tuple[str, ...], remove: bool) -> int:
    """Add TAGS to RUN, the directory of a run; without any, show those that it has.

    hookloop runs --filter tag=baseline lists the runs with a tag.
    """
    from hookloop.runs.tags import add_tags, open_run, read_labels, remove_tags

    home = open_run(run)
    if not tags:
        labels = read_labels(home)
    else:
        labels = remove_tags(home, tags) if remove else add_tags(home, tags)
    set_result({"run": str(run), "tags": list(labels.tags), "note": labels.note})
    print_text(f"{run}: {', '.join(labels.tags) or 'no tags'}")
    return 0
