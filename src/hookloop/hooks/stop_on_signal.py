"""`StopOnSignal`: Ctrl-C, SIGTERM and their kin end a run in order."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING

from hookloop.core.hook import Hook, Priority
from hookloop.errors import HookError, nearest
from hookloop.parallel.signals import STOP_SIGNALS

if TYPE_CHECKING:
    from hookloop.core.run import Run

_log = logging.getLogger("hookloop")

INSISTENT = ("SIGINT", "SIGTERM", "SIGQUIT")
"""Signals of which the second one ends at once.

The others may come several times on their own: a shell and the system both report a lost
connection, a limit of processor time is reported every second, and a cluster that has sent its
warning sends SIGTERM later.
"""


class StopOnSignal(Hook):
    """On a signal finish the iteration, save and end the run in order; exit with 128 + its number.

    By default the signals are SIGINT (Ctrl-C), SIGTERM, SIGHUP (a lost connection), SIGQUIT,
    SIGUSR1, SIGUSR2 (a cluster's warning) and SIGXCPU. A second SIGINT, SIGTERM or SIGQUIT ends at
    once, without saving; the others may be repeated. Left as they are: SIGHUP where ``nohup`` has
    it ignored, and any but the first two for which the program has a handler of its own.

    The handlers that were there before come back when the run has ended, after the last hook and
    writer. Until then, a signal that follows a cluster's warning does not cut them short. A run in
    another thread than the main one gets no signals, and this hook does nothing there.

    Args:
        signals: Names of the signals to obey, whoever else handles them; None for the usual ones.

    Example:
        >>> StopOnSignal(signals=["SIGTERM"]).signals
        (<Signals.SIGTERM: 15>,)
    """

    priority = Priority.HIGHEST
    draws_random_numbers = False

    def __init__(self, signals: Sequence[str] | None = None) -> None:
        known = signal.Signals.__members__
        for name in signals or ():
            if name not in known:
                raise HookError(f"StopOnSignal: no signal '{name}'.{nearest(name, known)}")
        self.signals = tuple(known[name] for name in (STOP_SIGNALS if signals is None else signals))
        self._is_usual = signals is None
        self._before: dict[int, object] = {}
        self._run: Run | None = None
        self._process = os.getpid()
        self._was_told = False
        self._is_ending = False

    def before_run(self, run: Run) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self._run, self._process = run, os.getpid()
        self._was_told = self._is_ending = False
        for number in self.signals:
            if not self._is_usual or _is_free(number):
                self._before[number] = signal.signal(number, self._receive)

    def after_run(self, run: Run) -> None:
        self._is_ending = True

    def leave(self) -> None:
        """Let the signals do again what they did before the run."""
        self._restore()
        self._run = None

    def _receive(self, number: int, frame: FrameType | None) -> None:
        name = signal.Signals(number).name
        is_insistent = name in INSISTENT
        run, is_child = self._run, os.getpid() != self._process
        if run is None or is_child or (is_insistent and self._is_last(run)):
            self._restore()  # A child that was forked dies as it always did.
            os.kill(os.getpid(), number)
            return
        if self._is_ending:
            self._was_told = self._was_told or is_insistent
            return
        if run.requests.stop is None or is_insistent:
            again = "send it again" if is_insistent else "Ctrl-C or SIGTERM, sent twice, is the way"
            _log.warning("%s: ending after this iteration; %s to end at once.", name, again)
        self._was_told = self._was_told or is_insistent
        run.stop(f"{name} was received", signal=number)

    def _is_last(self, run: Run) -> bool:
        """Return whether an insistent signal ends at once: the second one, or one at the end."""
        # Not whether the run is interrupted: one that stops for another reason has to be told, too.
        return self._was_told or (self._is_ending and not run.is_interrupted)

    def _restore(self) -> None:
        for number, handler in self._before.items():
            # None: it was not set from Python, and cannot be set again from here.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)  # type: ignore[arg-type]
        self._before.clear()


def leave_signals(run: Run) -> None:
    """Let the signals do what they did before a run, when all of it has ended."""
    for hook in run.hooks:
        if isinstance(hook, StopOnSignal):
            hook.leave()


def _is_free(number: signal.Signals) -> bool:
    """Return whether a signal is to be obeyed, going by what it does now."""
    now = signal.getsignal(number)
    if number.name in ("SIGINT", "SIGTERM"):
        return True
    if number.name == "SIGHUP":  # Ignored by nohup, on purpose.
        return now == signal.SIG_DFL
    return now in (signal.SIG_DFL, signal.SIG_IGN)
