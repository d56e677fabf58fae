"""One process of ``hookloop verify-resume``: train, and kill itself at a given moment.

It is not a verb: ``python -m hookloop.cli.verify_resume_process TASK``, with the task as JSON.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import TYPE_CHECKING, cast

from hookloop import dialects
from hookloop.config.build import arguments
from hookloop.config.load import load
from hookloop.engine.hook import Hook
from hookloop.hooks.save_checkpoint import SaveCheckpoint
from hookloop.parallel.launch import Attempt
from hookloop.parallel.launched import join_launcher, report_end, report_failure
from hookloop.parallel.rendezvous import Layout, Rendezvous
from hookloop.parallel.verdict import find_cause
from hookloop.runs.checkpoint_names import LAST
from hookloop.short_runs.short_run import short_run

if TYPE_CHECKING:
    from hookloop.engine.run import Run
    from hookloop.trainer.trainer import Trainer

PATIENCE = 30.0
"""Seconds to wait for a checkpoint before the process is killed without one."""


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
            threading.Timer(delay, self._kill, (run.world.rank,)).start()

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
        self._kill(run.world.rank)

    def _kill(self, rank: int) -> None:
        if self.who == "launcher":
            if rank == 0:  # Which waits for its own checkpoint.
                _kill(os.getppid())  # The ranks end with it.
        elif self.who in ("all ranks", f"rank {rank}"):
            _kill(os.getpid())


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _kill(pid: int) -> None:
    # Windows has no SIGKILL; there, SIGTERM ends a process as suddenly.
    os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))


def make_trainer(task: Mapping[str, object]) -> Trainer:
    """Build the config's trainer, shortened, with frequent saves and without outside services."""
    config = load(Path(str(task["config"])), cast("list[str]", task["overrides"]))
    if config.tree.get("seed") is None:
        config.tree["seed"] = 0
    every, hooks = cast("int", task["every"]), []
    if kill := cast("dict[str, object] | None", task["kill"]):
        who = str(kill.get("who", "all ranks"))
        hooks.append(KillProcess(cast("int", kill["iter"]), str(kill["moment"]), who, every))
    return short_run(
        # "auto", because the same task starts the run and continues it after a kill.
        arguments(config, run_dir=str(task["run_dir"]), resume="auto"),
        iters=cast("int", task["iters"]),
        hooks=hooks,
        checkpoints=SaveCheckpoint(every, keep=2).named("verify_resume"),
    ).trainer


def main() -> None:
    """Train as the task says, and write down what may make a resume inexact."""
    join_launcher()
    task = json.loads(sys.argv[1])
    if task.get("ranks", 1) > 1 and "RANK" not in os.environ:
        sys.exit(_launch(task["ranks"]))
    if task["aliases"]:
        dialects.alias(*task["aliases"])
    trainer = make_trainer(task)
    data = trainer.run.train_data
    # Written before the training, which may end in a kill.
    notes = [f"{data.name}: {data.inexact}."] if data is not None and data.inexact else []
    _write(trainer, task, notes)
    try:
        trainer.train()
        lost = trainer.run.undeclared.lost.items()
        _write(
            trainer,
            task,
            notes + [f"{name} ({kind}): no checkpoint holds it." for name, kind in lost],
        )
    except BaseException as error:
        report_failure(error, 1)
        raise
    report_end(0)


def _write(trainer: Trainer, task: Mapping[str, object], notes: list[str]) -> None:
    if trainer.run.world.is_main:
        file = Path(str(task["run_dir"])).with_suffix(".json")
        file.write_text(json.dumps(notes), encoding="utf-8")


def _launch(ranks: int) -> int:
    """Start this task on ranks; if one is killed, end as it did."""
    with TemporaryDirectory(prefix="hookloop-verify-") as folder:
        command = ["-m", "hookloop.cli.verify_resume_process", sys.argv[1]]
        ended = Attempt(command, Rendezvous(Layout(ranks)), Path(folder)).run()
    if -getattr(signal, "SIGKILL", signal.SIGTERM) in ended.codes.values():
        _kill(os.getpid())
    cause = find_cause(ended)
    if cause is not None:
        sys.stderr.write("\n".join((cause.traceback, *cause.messages)))
    return cause.code if cause is not None else 0


if __name__ == "__main__":
    main()
