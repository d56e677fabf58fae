"""``hookloop verify-resume``: test on the user's own config that a resume is exact."""

from __future__ import annotations

import json
import math
import random
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from hookloop.cli.arguments import chosen_aliases, config_and_overrides
from hookloop.cli.output import set_result
from hookloop.cli.report import print_error, print_text, reporting
from hookloop.cli.scratch import scratch_directory
from hookloop.errors import HookloopError
from hookloop.every import count_of
from hookloop.short_runs.task import Trials, failure_of

if TYPE_CHECKING:
    from hookloop.checkpoint.state.compare import Difference

KILLED = -9 if hasattr(signal, "SIGKILL") else int(signal.SIGTERM)
"""The exit code of a killed process; on Windows, the number of the signal that ends it."""


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
    help="Resume on M ranks; numbers may then differ by rounding.",
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
    from hookloop.config.load import load

    loaded = load(config, overrides)
    if loaded.tree.get("seed") is None:
        print_text("The config has no seed; 0 is used, so that two runs can be compared.")
    with scratch_directory("verify") as folder:
        proof = Proof(Path(folder), config, overrides, iters, chosen_aliases())
        proof.ranks, proof.resume_ranks = ranks or 1, resume_ranks or ranks or 1
        proof.deterministic = loaded.tree.get("deterministic", False)
        if proof.deterministic:
            print_text(f"deterministic: {proof.deterministic}, as the config says.")
        return proof.run(kills)


class Proof(Trials):
    """Trains a config with and without kills, and compares the final checkpoints.

    Attributes:
        ranks: The number of processes that train.
        resume_ranks: The number of those that continue after a kill.
        deterministic: What the config says about operations that do not repeat their bits.
    """

    ranks = 1
    resume_ranks = 1
    deterministic: object = False

    def run(self, kills: int) -> int:
        """Train, kill, resume, compare; return the exit code."""
        self._train("undisturbed")
        done = self._iterations("undisturbed")
        if done < 2:
            made = count_of(done, "iteration")
            raise HookloopError(f"The run ends after {made}: there is nothing to kill.")
        print_text(f"undisturbed: {count_of(done, 'iteration')}.")
        every = max(1, min(5, done // 4))
        # The run may be shorter than was asked for, and a kill before the first save tests nothing.
        # Both runs save alike, because the last save of the two is what is compared.
        if every != self.settings["every"]:
            self.settings["every"] = every
            shutil.rmtree(self.folder / "undisturbed")
            self._train("undisturbed")
        self._train_and_kill(done, kills)
        differences = self._compare("undisturbed", "killed", exactly=self._is_exact)
        result = "different" if differences else "exact" if self._is_exact else "close"
        set_result(
            {"result": result, "iters": done, "differences": [str(one) for one in differences]}
        )
        if not differences:
            print_text(EXACT if self._is_exact else CLOSE)
            return 0
        self._explain(differences)
        return 1

    def _train_and_kill(self, done: int, kills: int) -> None:
        # Each kill needs an iteration of its own: behind the first checkpoint, before the last one.
        first = min(int(str(self.settings["every"])), done - 1)
        iterations = range(first, done)
        moments: list[str] = []
        # Sorted, because each process continues where the one before it was killed.
        # The sample has no seed, so that each call tries other moments.
        for iteration in sorted(random.sample(iterations, min(kills, len(iterations)))):
            moments += self._kill_at(iteration, done, self.resume_ranks if moments else self.ranks)
        if not moments:
            raise HookloopError(
                "No kill took effect: the training was complete, or had saved nothing, each time. "
                "Train longer: --iters."
            )
        self._train("killed", ranks=self.resume_ranks)
        print_text(f"killed after iteration {', '.join(moments)}.")

    def _kill_at(self, iteration: int, done: int, ranks: int) -> list[str]:
        """Kill the training at an iteration; return how, or nothing if no kill tested a resume.

        A kill tests nothing if the training has ended before it, if the last checkpoint is complete
        already, or if there is none yet. It is undone then, and another moment is tried.
        """
        before, run_dir = self.folder / "before", self.folder / "killed"
        for moment in random.sample(MOMENTS, len(MOMENTS)):
            shutil.rmtree(before, ignore_errors=True)
            if run_dir.is_dir():
                shutil.copytree(run_dir, before, symlinks=True)
            kill: dict[str, object] = {"iter": iteration, "moment": moment, **self._victim(ranks)}
            code = self._train("killed", kill, (0, KILLED), ranks)
            saved = self._iterations("killed")
            if code == KILLED and 0 < saved < done:
                who = f"{kill['who']}, " if "who" in kill else ""
                return [f"{iteration} ({who}{moment}; resumed from {saved})"]
            shutil.rmtree(run_dir)
            if before.is_dir():
                before.rename(run_dir)
        return []

    @property
    def _is_exact(self) -> bool:
        """Whether the same number of ranks continues, so that sums are added in the same order."""
        return self.ranks == self.resume_ranks

    def _victim(self, ranks: int) -> dict[str, object]:
        """Choose whom to kill."""
        if ranks == 1:
            return {}
        who = random.choice((*(f"rank {rank}" for rank in range(ranks)), "all ranks", "launcher"))
        return {"who": who}

    def _train(
        self,
        name: str,
        kill: dict[str, object] | None = None,
        expected: Sequence[int] = (0,),
        ranks: int | None = None,
    ) -> int:
        task = {"kill": kill, "ranks": ranks or self.ranks}
        process = self.start("hookloop.cli.verify_resume_process", name, task)
        if process.returncode not in expected:
            raise failure_of(process)
        return process.returncode

    def _iterations(self, name: str) -> int:
        progress = self._final(name).get("progress")
        return int(progress["iter"]) if isinstance(progress, dict) else 0

    def _final(self, name: str) -> dict[str, object]:
        from hookloop.checkpoint.store.store import CheckpointStore

        found = CheckpointStore(self.folder / name).newest()
        return found[1] if found is not None else {}

    def _compare(self, first: str, second: str, *, exactly: bool = True) -> list[Difference]:
        from hookloop.checkpoint.state.compare import compare

        one, other = self._final(first), self._final(second)
        if exactly:
            return compare(one, other)
        # The rest belongs to the ranks, such as their random numbers.
        parts = [{part: side.get(part) for part in OF_ALL_RANKS} for side in (one, other)]
        return compare(parts[0], cast("dict[str, object]", adopt_close(*parts)))

    def _explain(self, differences: list[Difference]) -> None:
        # A config that is random by itself must not be reported as an inexact resume.
        self._train("undisturbed_again")
        own = self._compare("undisturbed", "undisturbed_again")
        if own:
            advice = "Seed what is random, and add deterministic=true."
            if self.deterministic:
                advice = (
                    f"Seed what is random; deterministic={self.deterministic!r} covers the "
                    "operations of torch only."
                )
            print_error(
                "two undisturbed runs of this config differ already, so a resume cannot be "
                f"judged. {advice}"
            )
            differences = own
        else:
            print_error("the resumed run is not the same as the undisturbed one.")
            if not self._is_exact:
                print_text(f"  {DEPENDS_ON_RANKS}", err=True)
        for difference in differences:
            print_text(f"  {difference}", err=True)
        notes = json.loads((self.folder / "undisturbed.json").read_text(encoding="utf-8"))
        for note in notes if not own else []:
            print_text(f"  {note}", err=True)


EXACT = "exact: every tensor and counter of the two final checkpoints is the same."
CLOSE = (
    "close: weights and optimizers are the same but for rounding, the place in the data exactly."
)

DEPENDS_ON_RANKS = (
    "Dropout, random augmentation and batch norm depend on the number of ranks: each rank draws "
    "its own numbers and sees its part of a batch. Leave them out to compare the rest."
)

OF_ALL_RANKS = ("model", "optimizers", "schedules", "progress", "data")
"""Parts of a checkpoint that do not depend on the number of ranks."""


def adopt_close(one: object, other: object) -> object:
    """Return ``other``, with each number that is ``one``'s but for rounding replaced by it."""
    import torch

    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        is_same = one.shape == other.shape and one.dtype == other.dtype
        is_close = is_same and one.is_floating_point()
        return one if is_close and torch.allclose(one, other, rtol=1e-3, atol=1e-5) else other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return {name: adopt_close(one.get(name), value) for name, value in other.items()}
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [adopt_close(*pair) for pair in zip(one, other, strict=True)]
    if isinstance(one, float) and isinstance(other, float):
        return one if math.isclose(one, other, rel_tol=1e-3, abs_tol=1e-5) else other
    return other


MOMENTS = ("before_train_iter", "after_forward", "after_backward", "after_update", "while saving")
