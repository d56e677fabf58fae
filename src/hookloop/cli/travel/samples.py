"""``hookloop samples``: which samples an iteration had, without training."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hookloop.cli.look.completing import complete_run
from hookloop.cli.shared.arguments import aliases
from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_text, reporting
from hookloop.every import count_of

if TYPE_CHECKING:
    from hookloop.short_runs.samples import Sample, Samples

MOST = 64
"""Samples of a microbatch that are shown; ``--json`` has all."""


@click.command("samples", short_help="Say which samples an iteration had.")
@aliases
@click.argument("run", type=click.Path(path_type=Path), shell_complete=complete_run)
@click.option(
    "--iter", "span", required=True, metavar="N|A:B", help="The iterations: 1234 or 1200:1300."
)
@reporting
def command(run: Path, span: str) -> int:
    """Say which samples the global batch of an iteration of RUN had, without training.

    The orders of its passes are drawn again as RUN recorded them, and no sample is loaded. A data
    set with a method id(index) gives the samples names of its own. Where RUN has fingerprints, the
    samples are compared with them. The config of RUN is code: what it names is imported and built.
    """
    from hookloop.config.replaying import samples

    found = samples(run, at=span)
    _report(run, found)
    return 0


def _report(run: Path, found: Samples) -> None:
    set_result(
        {
            "command": "samples",
            "runs": [str(run)],
            "iters": [found.first, found.last],
            "exact": not found.only_positions,
            "why_not": [*found.only_positions.values()],
            "from": found.origin,
            "confirmed": [*found.confirmed],
            "samples": [asdict(one) for one in found.samples],
            "seconds": {"predicted": None, "taken": found.seconds},
        }
    )
    for reason in found.only_positions.values():
        print_text(f"only positions: {reason}.")
    groups: dict[tuple[int, int, str, int], list[Sample]] = {}
    for one in found.samples:
        groups.setdefault((one.iter, one.microbatch, one.stream, one.rank), []).append(one)
    ranks = {one.rank for one in found.samples}
    microbatches = {one.microbatch for one in found.samples}
    for (iteration, microbatch, stream, rank), held in groups.items():
        where = [f"iteration {iteration}"]
        where += [f"microbatch {microbatch}"] * (len(microbatches) > 1)
        where += [stream] * bool(stream) + [f"rank {rank}"] * (len(ranks) > 1)
        shown = " ".join(str(one.index if one.id is None else one.id) for one in held[:MOST])
        more = f" ... ({len(held)} in all)" if len(held) > MOST else ""
        print_text(f"{', '.join(where)}: {shown}{more}")
    if found.confirmed:
        count = count_of(len(found.confirmed), "fingerprint")
        print_text(f"the samples are those of {count} of the run.")
