"""``hookloop join``: write the weights of a checkpoint into one safetensors file."""

from __future__ import annotations

from pathlib import Path

import click

from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_text, reporting


@click.command("join", short_help="Write the weights of a checkpoint into one file.")
@click.argument("checkpoint")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--part", default="model", show_default=True, help="What to take, e.g. averaged.")
@reporting
def command(checkpoint: str, out: Path, part: str) -> int:
    """Write the weights of CHECKPOINT into OUT, a safetensors file.

    CHECKPOINT is a directory of shards, which several ranks wrote, or a .pth file. Every file of a
    directory is verified first. With shards, only one tensor at a time is in memory.
    """
    from hookloop.checkpoint.shards.merge import join

    count = join(checkpoint, out, part)
    set_result({"file": str(out), "tensors": count, "bytes": out.stat().st_size})
    print_text(f"{out}: {count} tensors, {out.stat().st_size / 1e6:,.1f} MB.")
    return 0
