"""Prove that a resume is exact: train undisturbed, train with kills, and compare."""

from __future__ import annotations

import math
import os
import random
import shutil
import threading
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, cast

import torch

from hookloop.checkpoint.state.compare import Difference, compare
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.engine.hook import Hook
from hookloop.errors import HookloopError
from hookloop.every import count_of
from hookloop.hooks.saving.save_checkpoint import SaveCheckpoint
from hookloop.runs.checkpoint_names import LAST
from hookloop.short_runs.short_run import Arguments, shortened
from hookloop.short_runs.task import KILL, KILLED, Ended, TrainingTask, run_task

if TYPE_CHECKING:
    from hookloop.engine.run import Run

MOMENTS = ("before_train_iter", "after_forward", "after_backward", "after_update", "while saving")
"""When a process is killed: at a mount point, or a few milliseconds after a save has begun."""

OF_ALL_RANKS = ("model", "optimizers", "schedules", "progress", "data")
"""Parts of a checkpoint that do not depend on the number of ranks."""

PATIENCE = 30.0
"""Seconds to wait for a checkpoint before the process is killed without one."""


@dataclass(frozen=True)
class Proof:
    """What was found.

    Attributes:
        iters: How many iterations the training has.
        kills: Where it was killed, and what it was resumed from.
        is_exact: Whether bits were compared: sums are rounded alike on as many ranks as before, and
            with logical ranks.
        differences: Where the two final checkpoints differ.
        is_repeatable: Whether two undisturbed trainings are the same, if that was tried.
        notes: What may make a resume inexact.
    """

    iters: int
    kills: Sequence[str]
    is_exact: bool
    differences: Sequence[Difference] = ()
    is_repeatable: bool = True
    notes: Sequence[str] = ()


class Verification:
    """Trains with and without kills, and compares the final checkpoints.

    Args:
        module: What the processes run, see `run_task`.
        task: What is trained, on how many ranks; its directory is beside those of the runs.
        resume_ranks: The number of processes that continue after a kill.
        has_logical: Whether the config has logical ranks, whose bits do not depend on it.
        tell: Called with what is known on the way.
    """

    def __init__(
        self,
        module: str,
        task: TrainingTask,
        *,
        resume_ranks: int | None = None,
        has_logical: bool = False,
        tell: Callable[[str], None] = print,
    ) -> None:
        self._module = module
        self._task = task
        self._folder = Path(task.run_dir).parent
        self._resume_ranks = resume_ranks or task.ranks
        self._is_exact = has_logical or self._resume_ranks == task.ranks
        self._tell = tell
        self._every = save_interval(task.iters)
        # Without a seed, so that each call tries other moments, and of its own.
        self._random = random.Random()

    def run(self, kills: int) -> Proof:
        """Train, kill, resume, compare.

        Raises:
            HookloopError: If a training failed, or no kill tested a resume.
        """
        self._train("undisturbed")
        done = self._iterations("undisturbed")
        if done < 2:
            made = count_of(done, "iteration")
            raise HookloopError(f"The run ends after {made}: there is nothing to kill.")
        self._tell(f"undisturbed: {count_of(done, 'iteration')}.")
        # The run may be shorter than was asked for, and a kill before the first save tests nothing.
        # Both runs save alike, because the last save of the two is what is compared.
        if (every := save_interval(done)) != self._every:
            self._every = every
            shutil.rmtree(self._folder / "undisturbed")
            self._train("undisturbed")
        made_kills = self._kill_often(done, kills)
        self._train("killed", ranks=self._resume_ranks)
        self._tell(f"killed after iteration {', '.join(made_kills)}.")
        if len(made_kills) < kills:
            self._tell(
                f"Only {len(made_kills)} of {count_of(kills, 'kill')} tested a resume: the others "
                "came when the training was complete or had saved nothing. Train longer: --iters."
            )
        proof = Proof(done, made_kills, self._is_exact, self._compare("undisturbed", "killed"))
        return proof if not proof.differences else self._explained(proof)

    def _kill_often(self, done: int, kills: int) -> list[str]:
        """Kill until so many kills have tested a resume, or no iteration is left for one."""
        # Each kill needs an iteration of its own: behind the first checkpoint, before the last one,
        # and behind the one from which the last process was resumed.
        untried = set(range(min(self._every, done - 1), done))
        planned = sorted(self._random.sample(sorted(untried), min(kills, len(untried))))
        found: list[str] = []
        saved = 0
        while len(found) < kills and (left := sorted(one for one in untried if one > saved)):
            planned = [one for one in planned if one in left]
            # One that tested nothing is made up for elsewhere.
            iteration = planned[0] if planned else self._random.choice(left)
            untried.remove(iteration)
            ranks = self._resume_ranks if found else self._task.ranks
            if (how := self._kill_at(iteration, done, ranks)) is not None:
                found.append(how)
                saved = self._iterations("killed")
        if not found:
            raise HookloopError(
                "No kill took effect: the training was complete, or had saved nothing, each time. "
                "Train longer: --iters."
            )
        return found

    def _kill_at(self, iteration: int, done: int, ranks: int) -> str | None:
        """Kill the training at an iteration; return how, or None if no kill tested a resume.

        A kill tests nothing if the training has ended before it, if the last checkpoint is complete
        already, or if there is none yet. It is undone then, and another moment is tried.
        """
        before, run_dir = self._folder / "before", self._folder / "killed"
        for moment in self._random.sample(MOMENTS, len(MOMENTS)):
            shutil.rmtree(before, ignore_errors=True)
            if run_dir.is_dir():
                shutil.copytree(run_dir, before, symlinks=True)
            who = victim_of(ranks, self._random)
            kill = {"iter": iteration, "moment": moment, "who": who}
            mark_of(run_dir).unlink(missing_ok=True)
            code = self._train("killed", kill, (0, KILLED), ranks).code
            saved = self._iterations("killed")
            if code == KILLED and 0 < saved < done:
                # A save, or another rank, may come later than the iteration that was chosen.
                at = _read(mark_of(run_dir)) or iteration
                how = moment if ranks == 1 else f"{who}, {moment}"
                return f"{at} ({how}; resumed from {saved})"
            shutil.rmtree(run_dir)
            if before.is_dir():
                before.rename(run_dir)
        return None

    def _train(
        self,
        name: str,
        kill: Mapping[str, object] | None = None,
        expected: Sequence[int] = (0,),
        ranks: int | None = None,
    ) -> Ended:
        task = replace(
            self._task,
            run_dir=str(self._folder / name),
            ranks=ranks or self._task.ranks,
            options={"every": self._every, "kill": kill},
        )
        ended = run_task(self._module, task)
        if ended.code not in expected:
            raise ended.failure
        return ended

    def _iterations(self, name: str) -> int:
        progress = self._final(name).get("progress")
        return int(progress["iter"]) if isinstance(progress, dict) else 0

    def _final(self, name: str) -> dict[str, object]:
        found = CheckpointStore(self._folder / name).newest()
        return found[1] if found is not None else {}

    def _compare(self, first: str, second: str) -> list[Difference]:
        one, other = self._final(first), self._final(second)
        if self._is_exact:
            return compare(one, other)
        # The rest belongs to the ranks, such as their random numbers.
        parts = [{part: side.get(part) for part in OF_ALL_RANKS} for side in (one, other)]
        return compare(parts[0], cast("dict[str, object]", adopt_close(*parts)))

    def _explained(self, proof: Proof) -> Proof:
        # A config that is random by itself must not be reported as an inexact resume.
        again = self._train("undisturbed_again")
        if own := self._compare("undisturbed", "undisturbed_again"):
            return replace(proof, differences=own, is_repeatable=False)
        return replace(proof, notes=cast("list[str]", again.result))


def save_interval(iters: int) -> int:
    """Return after how many iterations to save: several times, even in a short training."""
    return max(1, min(5, iters // 4))


def victim_of(ranks: int, draw: random.Random) -> str:
    """Choose whom to kill."""
    if ranks == 1:
        return "all ranks"
    return draw.choice((*(f"rank {rank}" for rank in range(ranks)), "all ranks", "launcher"))


def adopt_close(one: object, other: object) -> object:
    """Return ``other``, with each number that is ``one``'s but for rounding replaced by it."""
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


# --- in the process that trains -------------------------------------------------------------------


class KillProcess(Hook):
    """Kills its own process, without any chance to clean up.

    Args:
        iteration: The number of completed iterations after which to do it.
        moment: The mount point, or ``"while saving"``: a few milliseconds after a save has begun.
        who: ``"rank 2"``, ``"all ranks"`` or ``"launcher"``; alone, the process itself.
        save_every: After how many iterations the first rank saves, which the others do not see.
    """

    draws_random_numbers = False

    def __init__(
        self, iteration: int, moment: str, who: str = "all ranks", save_every: int = 1
    ) -> None:
        self.iteration = iteration
        self.moment = moment
        self.who = who
        self.save_every = save_every
        self._begun = 0
        self._last: str | None = None
        self._saves = 0

    def before_train(self, run: Run) -> None:
        """Remember the checkpoint that this process resumed from."""
        self._last = _read(run.dir / LAST)
        self._begun = run.progress.iter

    def before_train_iter(self, run: Run) -> None:
        """Kill the process here, if it is time."""
        self._kill_if_due(run, "before_train_iter")

    def after_forward(self, run: Run) -> None:
        """Kill the process here, if it is time."""
        self._kill_if_due(run, "after_forward")

    def after_backward(self, run: Run) -> None:
        """Kill the process here, if it is time."""
        self._kill_if_due(run, "after_backward")

    def after_update(self, run: Run) -> None:
        """Kill the process here, if it is time."""
        self._kill_if_due(run, "after_update")

    def before_save_checkpoint(self, run: Run, checkpoint: MutableMapping[str, object]) -> None:
        """Remove this hook from the checkpoint, which may be the last; kill during the save."""
        # A run that is killed while it saves its last checkpoint is complete and not trained again.
        # The state of this hook would then stay in it, and count as a difference.
        cast("dict[str, object]", checkpoint["hooks"]).pop(self.name, None)
        self._saves += 1
        if self.moment == "while saving" and run.progress.iter >= self.iteration:
            # A generator of its own: the training must draw the same numbers as without the kill.
            delay = random.Random().uniform(0.0, 0.02)
            threading.Timer(delay, self._kill, (run, run.progress.iter)).start()

    def _kill_if_due(self, run: Run, moment: str) -> None:
        if self.moment != moment or run.progress.iter < self.iteration:
            return
        # A small model is faster than the disk: without a checkpoint, nothing would be tested.
        until = monotonic() + PATIENCE
        saves = self._saves
        if not run.world.is_main:
            saves = run.progress.iter // self.save_every - self._begun // self.save_every
        while saves and _read(run.dir / LAST) == self._last and monotonic() < until:
            sleep(0.002)
        self._kill(run, run.progress.iter)

    def _kill(self, run: Run, iteration: int) -> None:
        rank = run.world.rank
        # Of a launcher, with which all ranks end, by the first: it waits for its own checkpoint.
        if self.who in ("all ranks", f"rank {rank}") or (self.who == "launcher" and rank == 0):
            mark_of(run.dir).write_text(str(iteration), encoding="utf-8")
            _kill(os.getppid() if self.who == "launcher" else os.getpid())


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _kill(pid: int) -> None:
    os.kill(pid, KILL)


def mark_of(run_dir: Path) -> Path:
    """Return the file that says after which iteration a training was killed."""
    return run_dir.with_suffix(".kill")


def train_to_be_killed(task: TrainingTask, make: Callable[..., Arguments]) -> list[str]:
    """Train as the task says, from the newest checkpoint; return what makes a resume inexact.

    Args:
        task: The task.
        make: Returns the arguments of a Trainer, given ``run_dir`` and ``resume``.
    """
    hooks = []
    if kill := cast("dict[str, object] | None", task.options["kill"]):
        who, moment = str(kill["who"]), str(kill["moment"])
        every = cast("int", task.options["every"])
        hooks.append(KillProcess(cast("int", kill["iter"]), moment, who, every))
    return train_saving(task, make, hooks)


def train_saving(
    task: TrainingTask, make: Callable[..., Arguments], hooks: Sequence[Hook]
) -> list[str]:
    """Train as the task says, from the newest checkpoint; return what makes a resume inexact.

    Args:
        task: The task, which says after how many iterations to save.
        make: Returns the arguments of a Trainer, given ``run_dir`` and ``resume``.
        hooks: Further hooks.
    """
    every = cast("int", task.options["every"])
    trainer, _ = shortened(
        # "auto", because the same task starts the run and continues it after a kill.
        make(run_dir=task.run_dir, resume="auto"),
        iters=task.iters,
        hooks=hooks,
        checkpoints=SaveCheckpoint(every, keep=2).named("verify_resume"),
    )
    trainer.train()
    data = trainer.run.train_data
    notes = [f"{data.name}: {data.inexact}."] if data is not None and data.inexact else []
    lost = trainer.run._internals.undeclared.lost.items()
    return notes + [f"{name} ({kind}): no checkpoint holds it." for name, kind in lost]
