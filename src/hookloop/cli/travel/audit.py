"""``hookloop audit``: check that a run is what it says, and compute parts of it again."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hookloop.cli.look.completing import complete_run
from hookloop.cli.shared.arguments import aliases
from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_error, print_text, reporting

if TYPE_CHECKING:
    from hookloop.short_runs.audit import Audit

FAILED, NOT_AUDITED = 1, 2

LIMITS = (
    "Not proved: that the data is what it is called; that no other runs were made and not shown; "
    "edits that are consistent with the program."
)


@click.command("audit", short_help="Check that a run is what it says.")
@aliases
@click.argument("run", type=click.Path(path_type=Path), shell_complete=complete_run)
@click.option(
    "--segments",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Stretches between checkpoints to compute again.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Which of them.")
@click.option("--root", metavar="HEX", help="The root of its fingerprints, as you noted it.")
@reporting
def command(run: Path, segments: int, seed: int, root: str | None) -> int:
    """Check that RUN is what it says: its files among each other, and some of it computed again.

    First the chain of its fingerprints, the order of its lines, the checksums of its checkpoints
    and its config. Then stretches between neighbouring checkpoints are repeated and have to end
    with the bits of the next one, and meet what was recorded on the way; the first and the last are
    always among them. The exit code is 1 if something is not what RUN says, and 2 if a stretch
    cannot be computed again here. The config of RUN is code: what it names is imported and built.
    """
    from hookloop.config.replaying import audit

    found = audit(run, segments=segments, seed=seed, root=root, tell=print_text)
    _report(run, found)
    if found.problems or found.failed:
        return FAILED
    return NOT_AUDITED if found.skipped else 0


def _report(run: Path, found: Audit) -> None:
    bounds = [(one.first, one.last) for one in found.segments]
    set_result(
        {
            "command": "audit",
            "runs": [str(run)],
            "iters": [bounds[0][0], bounds[-1][1]],
            "exact": not (found.problems or found.failed or found.skipped),
            "why_not": [one.what for one in found.skipped],
            "problems": list(found.problems),
            "checked": len(found.segments),
            "of": found.count,
            "held": [asdict(one) for one in found.segments if one.result == "held"],
            "failed": [asdict(one) for one in found.failed],
            "chance": dict(found.chance),
            "root": found.root,
            "seconds": {"predicted": None, "taken": found.seconds},
        }
    )
    for problem in found.problems:
        print_error(problem)
    for one in found.failed:
        print_error(f"iterations {one.first} to {one.last} are not what the run says: {one.what}")
    for one in found.skipped:
        print_error(f"iterations {one.first} to {one.last} are not audited: {one.what}")
    held = sum(one.result == "held" for one in found.segments)
    print_text(f"{held} of {len(found.segments)} stretches held, of {found.count} in all.")
    parts = ", ".join(
        f"{chance:.0%} of {'one stretch' if name == 'one' else f'{name} of them'}"
        for name, chance in found.chance.items()
    )
    print_text(f"An edit is among those computed with a chance of {parts}.")
    print_text(LIMITS)
