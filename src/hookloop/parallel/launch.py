"""Start the ranks of a run on this node with torch's launcher, and pass signals on to them."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from hookloop.parallel.launched import LAUNCH, RESTART, Report, read_reports
from hookloop.parallel.signals import STOP_SIGNALS

if TYPE_CHECKING:
    from torch.distributed.launcher.api import LaunchConfig

INSISTENT = ("SIGINT", "SIGTERM", "SIGQUIT")
"""Signals that kill the ranks when they come a second time."""

THREADS = "OMP_NUM_THREADS"
"""The variable that says how many threads a process computes with."""

LOOK_EVERY = 0.1
"""Seconds between two looks at the ranks."""

GIVE_UP = 1.0
"""Seconds after a signal for which ranks may still appear that have to be told."""

_log = logging.getLogger("hookloop")


@dataclass(frozen=True)
class Layout:
    """How many ranks there are, and where they meet.

    Attributes:
        ranks: The number on this node.
        nodes: The number of nodes, each with a launcher of its own.
        rendezvous: ``HOST:PORT`` where the launchers of several nodes meet.
        patience: Seconds to wait for the launchers of the other nodes.
    """

    ranks: int
    nodes: int = 1
    rendezvous: str | None = None
    patience: int = 900


@dataclass
class Ended:
    """How the ranks of this node ended.

    Attributes:
        reports: What they reported, by rank.
        codes: The exit codes of those that failed, in the order in which it was noticed; that of a
            killed one is minus the signal.
        error: Why they could not be started.
        signal: The first signal that the launcher has passed on.
    """

    reports: dict[int, Report] = field(default_factory=dict)
    codes: dict[int, int] = field(default_factory=dict)
    error: Exception | None = None
    signal: int | None = None


class Attempt:
    """One start of the ranks of this node.

    Args:
        command: The arguments for Python.
        layout: How many ranks there are.
        folder: A private directory for the reports of this attempt.
        number: How often the ranks have been started before.
    """

    def __init__(
        self, command: Sequence[str], layout: Layout, folder: Path, number: int = 0
    ) -> None:
        # torch's launcher takes $ for the start of a variable.
        self._command = [argument.replace("$", "$$") for argument in command]
        self._layout = layout
        self._folder = folder
        self._number = number
        self._ended = Ended()
        self._asked: list[int] = []
        self._shown = 0
        self._told: set[tuple[int, int]] = set()
        self._since = 0.0
        self._kills = False

    def run(self) -> Ended:
        """Start the ranks, and wait until all have ended."""
        own = {LAUNCH: f"{os.getpid()}:{self._folder}", RESTART: str(self._number)}
        if self._layout.ranks > 1:
            # As torchrun does: ranks with a thread for each core would compete for all of them.
            own[THREADS] = os.environ.get(THREADS, "1")
        # Not in the main thread, in which Python handles signals: torch waits there in C++.
        agent = threading.Thread(target=self._run_agent, daemon=True)
        with _variables(own), _handled(self._receive):
            agent.start()
            while agent.is_alive():
                agent.join(LOOK_EVERY)
                self._pass_on()
                if self._asked and not self._reports() and time.monotonic() > self._since + GIVE_UP:
                    break  # Still waiting for other nodes. Ranks that appear now end with us.
        self._ended.reports = self._reports()
        self._ended.signal = self._asked[0] if self._asked else None
        return self._ended

    def _run_agent(self) -> None:
        from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
        from torch.distributed.launcher.api import elastic_launch

        try:
            with _quiet():
                elastic_launch(self._config(), sys.executable)(*self._command)
        except ChildFailedError as error:
            self._ended.codes = {rank: one.exitcode for rank, one in error.failures.items()}
        except Exception as error:  # noqa: BLE001 - it is shown by whoever waits for this thread
            self._ended.error = error

    def _config(self) -> LaunchConfig:
        from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, Std
        from torch.distributed.launcher.api import LaunchConfig

        layout, is_one = self._layout, self._layout.nodes == 1
        # The first rank writes to the terminal itself; lines of the others get their rank.
        others = dict.fromkeys(range(layout.ranks), Std.ALL) | {0: Std.NONE}
        return LaunchConfig(
            min_nodes=layout.nodes,
            max_nodes=layout.nodes,
            nproc_per_node=layout.ranks,
            # An attempt of its own: what the last one left at the meeting place does not count.
            run_id=uuid.uuid4().hex if is_one else f"hookloop-{self._number}",
            rdzv_backend="c10d",
            rdzv_endpoint="127.0.0.1:0" if is_one else layout.rendezvous or "",
            rdzv_configs={"timeout": layout.patience},
            local_addr="127.0.0.1" if is_one else None,
            max_restarts=0,
            monitor_interval=LOOK_EVERY,
            log_line_prefix_template="[rank ${rank}] ",
            logs_specs=DefaultLogsSpecs(str(self._folder / "output"), tee=others),
        )

    # --- signals --------------------------------------------------------------------------------

    def _receive(self, number: int, frame: FrameType | None) -> None:
        is_second = any(signal.Signals(one).name in INSISTENT for one in self._asked)
        if is_second and signal.Signals(number).name in INSISTENT:
            self._kills = True
        else:
            self._asked.append(number)
            self._since = time.monotonic()

    def _pass_on(self) -> None:
        """Tell every rank that runs what it has not been told yet, and the user that it was."""
        for number in self._asked[self._shown :]:
            self._shown += 1
            name = signal.Signals(number).name
            again = "sent again, it kills them" if name in INSISTENT else "Ctrl-C twice kills them"
            _log.warning("%s: the ranks end after this iteration; %s.", name, again)
        for report in self._reports().values() if self._asked else ():
            if report.exit_code is not None:
                continue
            for number in self._asked:
                if (report.pid, number) not in self._told:
                    self._told.add((report.pid, number))
                    with suppress(ProcessLookupError):
                        os.kill(report.pid, number)
            if self._kills:
                with suppress(ProcessLookupError):
                    # Each rank leads a group of its own, with the processes that load its data.
                    os.killpg(report.pid, signal.SIGKILL)

    def _reports(self) -> dict[int, Report]:
        return read_reports(self._folder)


@contextmanager
def _variables(added: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables, which is how torch's launcher hands them to the ranks."""
    before = dict(os.environ)
    os.environ.update(added)
    try:
        yield
    finally:
        for name in {*os.environ} - {*before}:
            del os.environ[name]
        os.environ.update(before)


@contextmanager
def _handled(receive: object) -> Iterator[None]:
    """Handle the signals that ask a process to end, except for those that are ignored."""
    numbers = [signal.Signals[name] for name in STOP_SIGNALS]
    chosen = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, receive) for number in chosen}  # type: ignore[arg-type]
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep torch's launcher from logging: ends of ranks are reported once, by us."""
    log, handler = logging.getLogger("torch.distributed.elastic"), logging.NullHandler()
    is_wanted = "LOGLEVEL" in os.environ  # With it, users ask torch's launcher for its log.
    before, log.propagate = log.propagate, is_wanted and log.propagate
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.propagate = before
