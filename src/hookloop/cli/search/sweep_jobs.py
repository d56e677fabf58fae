"""Train the trials of a sweep in processes of their own, several at a time."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import sleep
from types import FrameType

from hookloop.cli.search.sweep_study import Study, Trial

LOOK_EVERY = 0.1
"""Seconds between two looks at the processes."""

LAST_LINES = 15

EXCEPTION = re.compile(r"(error|[\w.]*(Error|Exception|Exit|Interrupt))(:|$)")
"""How the line begins that names an exception."""


@dataclass
class Jobs:
    """The processes that train the trials of a sweep.

    Attributes:
        study: The trials.
        task: What every process is told.
        most: How many run at a time.
        report: Called with each trial that has ended.
    """

    study: Study
    task: Mapping[str, object]
    most: int
    report: Callable[[Trial], None]
    signal: int | None = None
    _running: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    def run(self, count: int) -> None:
        """Train until there are ``count`` trials, those that were left unfinished first."""
        trials = self.study.trials()
        unfinished = [one for one in trials if one.state == "running"]
        left = count - len(trials)
        with self._passing_on_signals():
            while self._running or ((unfinished or left > 0) and self.signal is None):
                while len(self._running) < self.most and self.signal is None:
                    if unfinished:
                        self._start(unfinished.pop(0))
                    elif left > 0:
                        left -= 1
                        self._start(self.study.ask())
                    else:
                        break
                self._collect()
                sleep(LOOK_EVERY)

    def _start(self, trial: Trial) -> None:
        task = {
            **self.task,
            "number": trial.number,
            "name": trial.name,
            "chosen": dict(trial.chosen),
            "parent": os.getpid(),
        }
        with self._log_of(trial).open("ab") as output:
            self._running[trial.number] = subprocess.Popen(
                [sys.executable, "-m", "hookloop.cli.search.sweep_process", json.dumps(task)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # A group of its own: Ctrl-C reaches it once, through this process.
                start_new_session=True,
            )

    def _collect(self) -> None:
        ended = {
            number: code
            for number, process in self._running.items()
            if (code := process.poll()) is not None
        }
        for number, code in ended.items():
            del self._running[number]
            trial = self.study.trials()[number]
            # After a signal it has saved, and the next sweep in this directory continues it.
            if trial.state == "running" and self.signal is None:
                self.study.fail(number, self._problem(trial, code))
                trial = self.study.trials()[number]
            if trial.state != "running":
                self.report(trial)

    def _log_of(self, trial: Trial) -> Path:
        return self.study.folder / f"{trial.name}.log"

    def _problem(self, trial: Trial, code: int) -> str:
        """Return how a trial failed: its exception, or else the last thing that it said."""
        text = self._log_of(trial).read_text(encoding="utf-8", errors="replace")
        lines = [line for line in text.splitlines() if line.strip()][-LAST_LINES:]
        # Notes of an exception come after it, and do not say what it is.
        raised = [line for line in lines if EXCEPTION.match(line)]
        said = [*lines, *raised[-1:]]
        return f"exit code {code}: {said[-1] if said else 'it said nothing'}"

    @contextmanager
    def _passing_on_signals(self) -> Iterator[None]:
        """Ask all trials to end in order when this process is asked to."""

        def receive(number: int, frame: FrameType | None) -> None:
            self.signal = self.signal or number
            for process in self._running.values():
                process.send_signal(signal.SIGTERM)

        before = {one: signal.signal(one, receive) for one in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)
