"""``hookloop verify-resume``: test on the user's own config that a resume is exact."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hookloop.cli.prove.verifying import logical_ranks, prepared_task
from hookloop.cli.shared.arguments import config_and_overrides
from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_error, print_text, reporting
from hookloop.short_runs.scratch import scratch_directory

if TYPE_CHECKING:
    from hookloop.short_runs.verify_resume import Proof


@click.command("verify-resume", short_help="Prove that a resume of a config is exact.")
@config_and_overrides
@click.option(
    "--iters",
    type=click.IntRange(min=2),
    default=40,
    show_default=True,
    help="Iterations to train.",
)
@click.option(
    "--kills",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="How often to kill it.",
)
@click.option(
    "--ranks",
    type=click.IntRange(min=1),
    metavar="N",
    help="Train on N ranks; kill one, all of them, or the launcher.",
)
@click.option(
    "--resume-ranks",
    type=click.IntRange(min=1),
    metavar="M",
    help="Resume on M ranks; without logical ranks numbers may then differ by rounding.",
)
@reporting
def command(
    config: Path,
    overrides: tuple[str, ...],
    iters: int,
    kills: int,
    ranks: int | None,
    resume_ranks: int | None,
) -> int:
    """Train CONFIG twice: once undisturbed, once killed at random moments and resumed each time.

    Then every tensor and every counter of the two final checkpoints is compared. If they differ,
    the differences are listed and the exit code is 1. Nothing is left on disk, and nothing is sent
    to the services of the config's writers.
    """
    with scratch_directory("verify") as folder:
        loaded, task = prepared_task("verify-resume", folder, config, overrides, iters, ranks or 1)
        from hookloop.config.schema import setting_of

        if deterministic := setting_of(loaded.tree, "setup.deterministic"):
            print_text(f"deterministic: {deterministic}, as the config says.")
        from hookloop.cli.prove.task_process import MODULE
        from hookloop.short_runs.verify_resume import Verification

        proof = Verification(
            MODULE,
            task,
            resume_ranks=resume_ranks,
            has_logical=logical_ranks(loaded) > 0,
            tell=print_text,
        ).run(kills)
    return _report(proof, deterministic)


def _report(proof: Proof, deterministic: object) -> int:
    result = "different" if proof.differences else "exact" if proof.is_exact else "close"
    differences = [str(one) for one in proof.differences]
    set_result(
        {
            "result": result,
            "iters": proof.iters,
            "kills": list(proof.kills),
            "differences": differences,
        }
    )
    if not differences:
        print_text(EXACT if proof.is_exact else CLOSE)
        return 0
    if proof.is_repeatable:
        print_error("the resumed run is not the same as the undisturbed one.")
        if not proof.is_exact:
            print_text(f"  {DEPENDS_ON_RANKS}", err=True)
    else:
        advice = "Seed what is random, and add setup.deterministic=true."
        if deterministic:
            advice = (
                f"Seed what is random; deterministic={deterministic!r} covers the operations of "
                "torch only."
            )
        print_error(
            "two undisturbed runs of this config differ already, so a resume cannot be "
            f"judged. {advice}"
        )
    for line in [*differences, *proof.notes]:
        print_text(f"  {line}", err=True)
    return 1


EXACT = "exact: every tensor and counter of the two final checkpoints is the same."
CLOSE = (
    "close: weights and optimizers are the same but for rounding, the place in the data exactly. "
    "With logical ranks, parallel.logical=8, they are equal bit for bit on any number of processes."
)

DEPENDS_ON_RANKS = (
    "Dropout, random augmentation and batch norm depend on the number of ranks: each rank draws "
    "its own numbers and sees its part of a batch. With logical ranks they do not: add "
    "parallel.logical=8. Or leave them out to compare the rest."
)
