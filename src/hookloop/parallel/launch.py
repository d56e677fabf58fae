"""Start the ranks of a run on this node, watch them, and pass signals on to them."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from hookloop.parallel.launched import LAUNCH, RESTART, Report, read_reports
from hookloop.parallel.processes import Processes, Starter
from hookloop.parallel.rendezvous import Place, Rendezvous
from hookloop.parallel.settings import GROW_AFTER
from hookloop.parallel.signals import STOP_SIGNALS

INSISTENT = ("SIGINT", "SIGTERM", "SIGQUIT")
"""Signals that kill the ranks when they come a second time."""

THREADS = "OMP_NUM_THREADS"
"""The variable that says how many threads a process computes with."""

LOOK_EVERY = 0.1
"""Seconds between two looks at the ranks."""

INTERFACE = "GLOO_SOCKET_IFNAME"
"""The variable that says by which network interface gloo connects the ranks."""

GRACE = 10.0
"""Seconds in which ranks end by themselves when those of another node are gone."""

GIVE_UP = 1.0
"""Seconds after a signal for which ranks may still appear that have to be told."""

_log = logging.getLogger("hookloop")


@dataclass
class Ended:
    """How the ranks of this node ended.

    Attributes:
        reports: What they reported, by rank.
        codes: The exit codes of those that failed, in the order in which it was noticed; that of a
            killed one is minus the signal.
        error: Why they could not be started.
        signal: The first signal that the launcher has passed on.
        attempt: How often the ranks of all nodes had been started before.
        lost: What happened to the launcher of another node meanwhile.
        is_ended_for_lost: Whether this launcher ended its ranks because of that.
        lost_ranks: How many ranks of this node were killed, by somebody else.
        size: How many ranks all nodes had.
        has_grown: Whether the ranks had to end because there can be more.
    """

    reports: dict[int, Report] = field(default_factory=dict)
    codes: dict[int, int] = field(default_factory=dict)
    error: Exception | None = None
    signal: int | None = None
    attempt: int = 0
    lost: str | None = None
    is_ended_for_lost: bool = False
    lost_ranks: int = 0
    size: int = 0
    has_grown: bool = False


class Attempt:
    """One start of the ranks of this node.

    Args:
        command: The arguments for Python.
        rendezvous: The connection to the launchers of the other nodes.
        folder: A private directory for the reports of this attempt.
        number: How often the ranks have been started before.
        starter: Starts the ranks; by default each is a new process.
        ranks: How many are started here; by default as many as there can be.
        grow_after: Seconds after which fewer than that end in order, to be more again.
    """

    def __init__(
        self,
        command: Sequence[str],
        rendezvous: Rendezvous,
        folder: Path,
        number: int = 0,
        starter: Starter | None = None,
        ranks: int | None = None,
        grow_after: float = GROW_AFTER,
    ) -> None:
        self._starter = starter or Starter()
        self._ranks = ranks or rendezvous.layout.ranks
        self._grow_after = grow_after
        self._command = command
        self._rendezvous = rendezvous
        self._folder = folder
        self._number = number
        self._ended = Ended(attempt=number)
        self._asked: list[int] = []
        self._shown = 0
        self._told: set[tuple[int, int]] = set()
        self._since = 0.0
        self._kills = False

    def run(self) -> Ended:
        """Start the ranks, and wait until all have ended."""
        # While it waits for other nodes, the main thread handles signals.
        agent = threading.Thread(target=self._run_agent, daemon=True)
        with _handled(self._receive):
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
        try:
            place = self._rendezvous.meet(self._number, self._ranks)
            self._ended.attempt, self._ended.size = place.attempt, place.world_size
            ranks = self._start(place)
            try:
                self._watch(ranks, place)
            finally:
                ranks.close()
        except Exception as error:  # noqa: BLE001 - it is shown by whoever waits for this thread
            self._ended.error = error

    def _start(self, place: Place) -> Processes:
        local = range(place.ranks)
        # The first rank writes to the terminal itself; lines of the others get their rank.
        return Processes(
            self._starter,
            self._command,
            [{**os.environ, **self._variables(place, rank)} for rank in local],
            [f"[rank {place.first_rank + rank}] " if rank else None for rank in local],
            self._folder / "output",
        )

    def _variables(self, place: Place, local_rank: int) -> dict[str, str]:
        """Return the environment of a rank, which is that of torchrun and some of our own."""
        rank, size = str(place.first_rank + local_rank), str(place.world_size)
        variables = {
            LAUNCH: f"{self._starter.parent}:{self._folder}",
            RESTART: str(place.attempt),
            "LOCAL_RANK": str(local_rank),
            "RANK": rank,
            "ROLE_RANK": rank,
            "ROLE_NAME": "default",
            "LOCAL_WORLD_SIZE": str(place.ranks),
            "WORLD_SIZE": size,
            "ROLE_WORLD_SIZE": size,
            "GROUP_RANK": str(place.node),
            "GROUP_WORLD_SIZE": str(place.nodes),
            "MASTER_ADDR": place.address,
            "MASTER_PORT": str(place.port),
            "TORCHELASTIC_RESTART_COUNT": "0",
            "TORCHELASTIC_MAX_RESTARTS": "0",
            "TORCHELASTIC_RUN_ID": self._rendezvous.run_id,
            # The launcher of the first node keeps the store, so that it outlives each rank.
            "TORCHELASTIC_USE_AGENT_STORE": "True",
        }
        # That of all ranks which there can be: a number of threads may change bits.
        variables |= threads_of_ranks(self._rendezvous.layout.ranks)
        if place.interface is not None:
            # gloo would take the address of the host's name, which may be one for itself only.
            variables[INTERFACE] = os.environ.get(INTERFACE, place.interface)
        return variables

    def _watch(self, ranks: Processes, place: Place) -> None:
        """Wait for the end of the ranks, also if those of another node are gone."""
        since, grows_at = None, time.monotonic() + self._grow_after
        while ranks.look():
            time.sleep(LOOK_EVERY)
            if place.ranks < self._rendezvous.layout.ranks and time.monotonic() > grows_at:
                self._rendezvous.grow()
                grows_at = float("inf")
            if self._rendezvous.is_growing and not self._ended.has_grown:
                self._ended.has_grown = True
                self._tell([signal.SIGTERM])
            if since is None and (lost := self._rendezvous.news()) is not None:
                # Its ranks break off their connections, and ours end by themselves, with reasons.
                self._ended.lost, since = lost, time.monotonic()
            elif since is not None and time.monotonic() > since + GRACE:
                self._ended.is_ended_for_lost = True
                ranks.end_soon()
        self._ended.lost_ranks = ranks.lost
        failures = ranks.failures.items()
        self._ended.codes = {place.first_rank + rank: code for rank, code in failures}
        if failures and self._ended.lost is None:
            self._ended.lost = self._rendezvous.news()

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
        if self._asked:
            self._tell(self._asked)
        if self._kills:
            for report in self._reports().values():
                if report.exit_code is None:
                    with suppress(ProcessLookupError):
                        # Each rank leads a group of its own, with the processes that load its data.
                        os.killpg(report.pid, signal.SIGKILL)

    def _tell(self, numbers: Sequence[int]) -> None:
        for report in self._reports().values():
            for number in numbers if report.exit_code is None else ():
                if (report.pid, number) not in self._told:
                    self._told.add((report.pid, number))
                    with suppress(ProcessLookupError):
                        os.kill(report.pid, number)

    def _reports(self) -> dict[int, Report]:
        return read_reports(self._folder)


def threads_of_ranks(ranks: int) -> dict[str, str]:
    """Return the variable that says with how many threads each rank of this node computes.

    As with torchrun: ranks with a thread for each core would compete for all of them.
    """
    return {THREADS: os.environ.get(THREADS, "1")} if ranks > 1 else {}


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
