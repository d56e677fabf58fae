"""``hookloop publish``: give a trained model away, with its config and a model card."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from hookloop.cli.look.completing import run_argument
from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_text, reporting
from hookloop.runs.layout import RunDir
from hookloop.runs.shown import show_size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hookloop.checkpoint.choose import Chosen
    from hookloop.checkpoint.export.publish import Format
    from hookloop.checkpoint.export.publish_run import Publication


@click.command("publish", short_help="Write or upload a run's weights, config and model card.")
@run_argument
@click.option(
    "--to",
    metavar="DIR|hf://USER/MODEL",
    help="A directory, by default RUN/published, or a repository on the Hugging Face hub.",
)
@click.option(
    "--checkpoint",
    metavar="best|last|FILE",
    help="The weights; by default the best where one is kept, else the last.",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(["safetensors", "pth"]),
    default="safetensors",
    show_default=True,
)
@click.option("--card/--no-card", default=True, help="Whether to write README.md, a model card.")
@click.option("--private", is_flag=True, help="Create the repository as a private one.")
@click.option("--overwrite", is_flag=True, help="Replace files of the same names.")
@click.option("--dry-run", is_flag=True, help="Only list what would be published.")
@reporting
def command(  # noqa: PLR0913 - one for each option
    *,
    run: Path,
    to: str | None,
    checkpoint: str | None,
    kind: str,
    card: bool,
    private: bool,
    overwrite: bool,
    dry_run: bool,
) -> int:
    """Publish the model of RUN, the directory of a run: weights, config.yaml, README.md.

    Nothing of the run is executed. The token for the hub is that of huggingface_hub: HF_TOKEN, or
    what 'hf auth login' stored.
    """
    from hookloop.checkpoint.choose import choose
    from hookloop.checkpoint.export.publish_run import check_target, collect, write

    target = to or str(run / "published")
    config = _read_config(run)
    chosen = choose(run, checkpoint)
    name = target.rpartition("/")[2] if target.startswith("hf://") else None
    made = collect(run, chosen, config, format=cast("Format", kind), card=card, name=name)
    check_target(target, made.files, overwrite=overwrite)
    place = target if dry_run else write(made, target, private=private)
    result = {
        "to": place,
        "published": not dry_run,
        "files": {name: len(content) for name, content in made.files.items()},
        "checkpoint": chosen.path,
        "kind": chosen.kind,
        "weights": chosen.part,
        "metadata": made.about,
    }
    set_result(result)
    print_text(_describe(made, chosen, place, dry_run))
    return 0


def _describe(made: Publication, chosen: Chosen, place: str, dry_run: bool) -> str:
    files = ", ".join(f"{name} ({show_size(len(content))})" for name, content in made.files.items())
    word = "would get" if dry_run else "has"
    lines = [f"{place} {word} {files}: {chosen}."]
    if chosen.others:
        lines.append(f"  Also the best, by another metric: {', '.join(chosen.others)}.")
    return "\n".join(lines)


def _read_config(run: Path) -> Mapping[str, object]:
    """Return the config that a run wrote, as it stands in the file: nothing is resolved."""
    from hookloop.config.reading.yaml_file import read_yaml

    path = RunDir(run).config_file
    # A training that a script describes has no config.
    return read_yaml(path, str(path)).tree if path.is_file() else {}
