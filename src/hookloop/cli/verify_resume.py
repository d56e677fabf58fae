"""``hookloop verify-resume``: test on the user's own config that a resume is exact."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from hookloop.cli.arguments import config_and_overrides
from hookloop.cli.report import print_error, print_text, reporting
from hookloop.cli.trials import Trials, failure_of
from hookloop.errors import HookloopError

if TYPE_CHECKING:
    from hookloop.checkpoint.compare import Difference

KILLED = -9 if hasattr(signal, "SIGKILL") else int(signal.SIGTERM)
"""The exit code of a killed process; on Windows, the number of the signal that ends it."""


@click.command("verify-resume", short_help="Prove that a resume of a config is exact.")
@config_and_overrides
@click.option("--iters", type=click.IntRange(min=2), default=40, help="Iterations to train.")
@click.option("--kills", type=click.IntRange(min=1), default=3, help="How often to kill it.")
@reporting
def command(config: Path, overrides: tuple[str, ...], iters: int, kills: int) -> int:
    """Train CONFIG twice: once undisturbed, once killed at random moments and resumed each time.

    Then every tensor and every counter of the two final checkpoints is compared. If they differ,
    the differences are listed and the exit code is 1. Nothing is left on disk, and nothing is sent
    to the services of the config's writers.
    """
    from hookloop.config.load import load

    loaded = load(config, overrides)
    if loaded.tree.get("seed") is None:
        print_text("The config has no seed; 0 is used, so that two runs can be compared.")
    with TemporaryDirectory(prefix="hookloop-verify-") as folder:
        return Proof(Path(folder), config, overrides, iters).run(kills)


class Proof(Trials):
    """Trains a config with and without kills, and compares the final checkpoints."""

    def run(self, kills: int) -> int:
        """Train, kill, resume, compare; return the exit code."""
        self._train("undisturbed")
        done = self._iterations("undisturbed")
        if done < 2:
            raise HookloopError(f"The run ends after {done} iterations: there is nothing to kill.")
        print_text(f"undisturbed: {done} iterations.")
        # Each kill needs an iteration of its own, before the last one.
        self._train_and_kill(done, min(kills, done - 1))
        differences = self._compare("undisturbed", "killed")
        if not differences:
            print_text("exact: every tensor and counter of the two final checkpoints is the same.")
            return 0
        self._explain(differences)
        return 1

    def _train_and_kill(self, done: int, kills: int) -> None:
        moments = []
        # Sorted, because each process continues where the one before it was killed.
        # The sample has no seed, so that each call tries other moments.
        for iteration in sorted(random.sample(range(1, done), kills)):
            moment = random.choice(MOMENTS)
            # A run may end before the save during which it should be killed.
            code = self._train("killed", {"iter": iteration, "moment": moment}, (0, KILLED))
            if code == KILLED:
                moments.append(f"{iteration} ({moment}; resumed from {self._iterations('killed')})")
        self._train("killed")
        print_text(f"killed after iteration {', '.join(moments)}.")

    def _train(
        self, name: str, kill: dict[str, object] | None = None, expected: Sequence[int] = (0,)
    ) -> int:
        process = self.start("hookloop.cli.verify_resume_process", name, {"kill": kill})
        if process.returncode not in expected:
            raise failure_of(process)
        return process.returncode

    def _iterations(self, name: str) -> int:
        progress = self._final(name).get("progress")
        return int(progress["iter"]) if isinstance(progress, dict) else 0

    def _final(self, name: str) -> dict[str, object]:
        from hookloop.checkpoint.store import CheckpointStore

        found = CheckpointStore(self.folder / name).newest()
        return found[1] if found is not None else {}

    def _compare(self, first: str, second: str) -> list[Difference]:
        from hookloop.checkpoint.compare import compare

        return compare(self._final(first), self._final(second))

    def _explain(self, differences: list[Difference]) -> None:
        # A config that is random by itself must not be reported as an inexact resume.
        self._train("undisturbed_again")
        own = self._compare("undisturbed", "undisturbed_again")
        if own:
            print_error(
                "two undisturbed runs of this config differ already, so a resume cannot be "
                "judged. Seed what is random, or torch.use_deterministic_algorithms(True)."
            )
            differences = own
        else:
            print_error("the resumed run is not the same as the undisturbed one.")
        for difference in differences:
            print_text(f"  {difference}", err=True)
        notes = json.loads((self.folder / "undisturbed.json").read_text(encoding="utf-8"))
        for note in notes if not own else []:
            print_text(f"  {note}", err=True)


MOMENTS = ("before_train_iter", "after_forward", "after_backward", "after_update", "while saving")
