"""One training of a configuration, and what is written down of it."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NoReturn

import torch
from tests.golden import versions
from tests.golden.digests import Table, flatten, generators

import hookloop
from hookloop import Hook, Trainer
from hookloop.hooks import SaveCheckpoint, ShowProgress, WriteMetrics

SOURCE = str(Path(hookloop.__file__).parent)
WAIT = 60.0
"""Seconds after which something that should have happened counts as failed."""


@dataclass
class Attempt:
    """What a configuration gets: where it trains, and in which of its parts it is.

    Attributes:
        directory: Its own directory; the run is in ``run``.
        part: ``whole``, ``counted``, ``killed at ...`` or ``resumed after ...``.
        variant: Which of several trainings with the same number.
        kill: At which iteration, or in which place that the configuration knows, to be killed.
        is_resumed: Whether a checkpoint is continued.
        after: Where the run was killed before.
    """

    directory: Path
    part: str
    variant: str = ""
    kill: int | str | None = None
    is_resumed: bool = False
    after: int | str | None = None
    record: dict[str, Any] = field(default_factory=dict)

    @property
    def is_counted(self) -> bool:
        return self.part == "counted"

    @property
    def run_dir(self) -> Path:
        return self.directory / "run"

    def trainer(
        self,
        model: torch.nn.Module,
        *,
        hooks: Sequence[Hook] = (),
        save: SaveCheckpoint | int | None = 1,
        defaults: Mapping[str, Hook | None] | bool = True,
        generators: Iterable[torch.Generator] = (),
        is_own_loop: bool = False,
        run_dir: str = "run",
        **options: Any,
    ) -> Trainer:
        """Make a Trainer with what has to be there to record; nothing of it if calls are counted.

        Args:
            model: The model.
            hooks: Hooks of the configuration.
            save: After how many iterations to save, all files kept; or a hook that saves.
            defaults: Changes to the default hooks; False for none of them.
            generators: Those of the loaders.
            is_own_loop: Whether the updates are made in `Trainer.loop`.
            run_dir: The name of the run's directory.
            options: Other arguments of the Trainer.
        """
        own = list(hooks)
        if isinstance(save, int):
            save = SaveCheckpoint(every=save, keep=None)
        if self.is_counted:
            own.append(CountCalls(self.record.setdefault("calls", [])))
            save = SaveCheckpoint(every=None, last=False) if save is not None else None
        else:
            watched = [*generators]
            first = Observer(self.record, watched, "first", within=not is_own_loop)
            last = Observer(self.record, watched, "last", within=not is_own_loop)
            own = [first, *own, last]
            if isinstance(self.kill, int):
                own.append(KillAfter(self.kill, self))
        standard: dict[str, Hook | None] | bool = False
        if defaults is not False:
            standard = {
                "metrics": WriteMetrics(every=2),
                "console": ShowProgress(every=3),
                "checkpoint": save,
                **(defaults if isinstance(defaults, Mapping) else {}),
            }
            if self.is_counted:
                standard |= {"requests": None, "environment": None}
        elif save is not None and not self.is_counted and self.part != "whole":
            own.append(save)
        options = {"run_dir": self.directory / run_dir, "resume": "auto", "device": "cpu"} | options
        if options["resume"] is None:
            del options["resume"]
        return Trainer(model, hooks=own, default_hooks=standard, **options)

    def train(self, trainer: Trainer, **limits: Any) -> None:
        """Train, and write down how it ended."""
        self.within(trainer, lambda: trainer.train(**limits))

    def within(self, trainer: Trainer, work: Callable[[], object]) -> None:
        """Do something with a Trainer, and write down in which state it is afterwards."""
        try:
            work()
        except hookloop.Interrupted as error:
            self.note("interrupted", str(error))
        self.end(trainer)

    def end(self, trainer: Trainer, name: str = "end") -> None:
        """Write down the state of a run."""
        run = trainer.run
        self.record.setdefault("end", {}).update(
            flatten(
                {
                    "model": run.model.state_dict(),
                    "gradients": [one.grad for one in run.model.parameters()],
                    "optimizers": {key: one.state_dict() for key, one in run.optimizers.items()},
                    "schedules": {key: one.state_dict() for key, one in run.schedules.items()},
                    "scaler": None
                    if run._internals.scaler is None
                    else run._internals.scaler.state_dict(),
                    "metrics": run.metrics.state_dict(),
                    "progress": run.progress.state_dict(),
                    "status": (run.outcome.status, run.outcome.reason),
                    "generators": generators(),
                },
                name,
            )
        )

    def note(self, name: str, value: object) -> None:
        """Write down a result of the configuration's own."""
        self.record.setdefault("end", {}).update(flatten(value, name))

    def wait_for_last(self, name: str) -> None:
        """Wait until a checkpoint is durable and named as the last one."""
        pointer = self.run_dir / "last_checkpoint"
        _wait(lambda: pointer.exists() and name in pointer.read_text(), f"{name} is written")

    def die(self) -> NoReturn:
        """End as a process ends that is killed, once everything that was asked for is on disk."""
        self.wait_for_saves()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        (self.directory / f"dead_{rank()}").touch()
        size = int(os.environ.get("WORLD_SIZE", "1"))
        _wait(lambda: len(list(self.directory.glob("dead_*"))) == size, "all ranks come to the end")
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("unreachable")

    def wait_for_saves(self) -> None:
        """Wait until the newest checkpoint is durable: a resume must not find another one."""
        wanted = self.record.get("saved_at")
        if wanted is not None and rank() == 0:
            _wait(
                lambda: wanted in _durable(self.run_dir), f"the checkpoint of {wanted} is durable"
            )


def rank() -> int:
    return int(os.environ.get("RANK", "0"))


def _durable(run_dir: Path) -> set[int]:
    try:
        index = json.loads((run_dir / "checkpoints.json").read_text())
    except (OSError, ValueError):
        return set()
    return {entry["iter"] for entry in index["checkpoints"]}


def _wait(is_done: Callable[[], bool], what: str) -> None:
    end = monotonic() + WAIT
    while not is_done():
        if monotonic() > end:
            raise AssertionError(f"It did not happen that {what}.")
        sleep(0.002)


# --- hooks that record ----------------------------------------------------------------------------


class Observer(Hook):
    """Notes at every mount point where all generators stand, and draws nothing.

    One acts first of all hooks and one last, so a draw that moves from one hook to another is seen,
    too. A gather calls `state_dict`, a restore `load_state_dict`.
    """

    draws_random_numbers = False
    ranks = "all"

    def __init__(
        self,
        record: dict[str, Any],
        watched: Sequence[torch.Generator],
        place: str,
        *,
        within: bool,
    ) -> None:
        self.name = f"observer_{place}"
        self.priority = 0 if place == "first" else 100
        self._record, self._watched, self._place = record, watched, place
        self._run: Any = None
        self._trace: list[list[Any]] = record.setdefault("trace", [])
        self._announced: list[str] = record.setdefault("announced", [])
        for point in versions.POINTS:
            if within or point not in versions.WITHIN:
                setattr(self, point, self._noting(point))

    def _noting(self, point: str) -> Callable[..., None]:
        # A file becomes durable at a moment of its own, so its announcement has no place.
        if point == "after_save_checkpoint":
            return lambda run, saved: self._announced.append(saved.name)

        if point == "before_save_checkpoint":

            def before_save_checkpoint(run: Any, checkpoint: Any) -> None:
                self._record["saved_at"] = run.progress.iter
                self._note(point, run)

            return before_save_checkpoint
        return lambda run, *_: self._note(point, run)

    def _note(self, point: str, run: Any) -> None:
        self._run = run
        digests: Table = generators(self._watched)
        where = run.phase, run.stream, run.progress.iter, run.progress.epoch
        self._trace.append([f"{point} ({self._place})", *where, digests])

    def state_dict(self) -> dict[str, object]:
        if self._run is not None and self._place == "first":
            self._note("gather", self._run)
        return {}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        if self._run is not None:
            self._note("restore", self._run)


class CountCalls(Hook):
    """Counts the calls of hookloop's own functions from one iteration to the next.

    Those with the end of an epoch or a validation between them are not counted.
    """

    draws_random_numbers = False
    ranks = "all"
    priority = 100
    name = "count_calls"

    def __init__(self, counts: list[int]) -> None:
        self._counts = counts
        self._calls = 0
        self._is_plain = False

    def before_train(self, run: object) -> None:
        self._calls = 0
        versions.stop_clocks()

        def note(frame: Any, event: str, _: object) -> None:
            if event == "call" and frame.f_code.co_filename.startswith(SOURCE):
                self._calls += 1

        sys.setprofile(note)

    def after_train_iter(self, run: object) -> None:
        if self._is_plain:
            self._counts.append(self._calls)
        self._calls, self._is_plain = 0, True

    def before_epoch(self, run: object) -> None:
        self._is_plain = False

    def before_val(self, run: object) -> None:
        self._is_plain = False

    def after_run(self, run: Any) -> None:
        sys.setprofile(None)
        if run.world.size > 1:  # Ranks meet at moments of their own, which costs calls.
            self._counts[:] = [min(self._counts)]


class KillAfter(Hook):
    """Ends the process after some iterations, when the batch of the next one has been read."""

    draws_random_numbers = False
    ranks = "all"
    priority = 100
    name = "kill_after"

    def __init__(self, after: int, attempt: Attempt) -> None:
        self._after, self._attempt = after, attempt

    def before_train_iter(self, run: Any) -> None:
        if run.progress.iter == self._after:
            self._attempt.die()
