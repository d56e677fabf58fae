"""`StopOnSignal`: end a run cleanly on Ctrl-C, SIGTERM and similar signals."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Sequence
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING

from hookloop.engine.hook import Hook, Priority
from hookloop.errors import HookError, nearest
from hookloop.parallel.launched import is_launched
from hookloop.parallel.signals import STOP_SIGNALS
from hookloop.runs.run_log import current_logs

if TYPE_CHECKING:
    from hookloop.engine.run import Run

_log = logging.getLogger("hookloop")

INSISTENT = ("SIGINT", "SIGTERM", "SIGQUIT")
"""Signals that end the run at once when they come a second time.

The others may come several times by themselves: a shell and the system both report a lost
connection, a limit of processor time is reported every second, and a cluster that has sent its
warning sends SIGTERM later.
"""

REPEATED = 2.0
"""Seconds in which a signal that comes again is the same one, on many ranks.

A cluster may signal every process: a rank then gets the signal itself, and from its launcher.
"""


class StopOnSignal(Hook):
    """On a signal, finish the iteration, save and end the run; exit with 128 + the signal's number.

    By default the signals are SIGINT (Ctrl-C), SIGTERM, SIGHUP (a lost connection), SIGQUIT,
    SIGUSR1, SIGUSR2 (a cluster's warning) and SIGXCPU. A second SIGINT, SIGTERM or SIGQUIT ends the
    run at once, without saving; the others may be repeated. SIGHUP is left alone if ``nohup``
    ignores it, and every signal but the first two is left alone if the program has its own handler
    for it. On many ranks, a signal that comes again within two seconds is the same one, passed on
    by the launcher.

    The previous handlers are restored when the run has ended, after the last hook and writer. Until
    then, a signal that follows a cluster's warning does not interrupt them. A run outside the main
    thread gets no signals, and this hook does nothing there.

    Args:
        signals: Names of the signals to handle, even if the program has its own handler for them;
            None for the usual ones.

    Example:
        >>> StopOnSignal(signals=["SIGTERM"]).signals
        (<Signals.SIGTERM: 15>,)
    """

    priority = Priority.HIGHEST
    draws_random_numbers = False

    def __init__(self, signals: Sequence[str] | None = None) -> None:
        members = signal.Signals.__members__
        for name in signals or ():
            if name not in members:
                raise HookError(f"StopOnSignal: no signal '{name}'.{nearest(name, members)}")
        chosen = STOP_SIGNALS if signals is None else signals
        self.signals = tuple(members[name] for name in chosen)
        self._is_usual = signals is None
        self._before: dict[int, object] = {}
        self._run: Run | None = None
        self._process = os.getpid()
        self._was_asked = False
        self._is_ending = False
        self._received: dict[int, float] = {}

    def before_run(self, run: Run) -> None:
        # Python allows signal.signal() in the main thread only.
        if threading.current_thread() is not threading.main_thread():
            return
        self._run, self._process = run, os.getpid()
        self._was_asked = self._is_ending = False
        self._received = {}
        for number in self.signals:
            if not self._is_usual or _is_free(number):
                self._before[number] = signal.signal(number, self._receive)

    def after_run(self, run: Run) -> None:
        # The handlers stay: later hooks and the writers still have work to finish.
        self._is_ending = True

    def restore_handlers(self) -> None:
        """Restore the signal handlers that were set before the run."""
        self._restore()
        self._run = None

    def _receive(self, number: int, frame: FrameType | None) -> None:
        name = signal.Signals(number).name
        is_insistent = name in INSISTENT
        run, is_child = self._run, os.getpid() != self._process
        if run is not None and not is_child and self._is_repeated(run, number):
            return
        if run is None or is_child or (is_insistent and self._is_last(run)):
            # A forked child, such as a worker of the data loader, inherits this handler. It dies as
            # it would without the run. The signal is sent again for the handler that was restored.
            self._restore()
            os.kill(os.getpid(), number)
            return
        if self._is_ending:
            self._was_asked = self._was_asked or is_insistent
            return
        if run._internals.requests.stop is None or is_insistent:
            _announce(run, name, is_insistent=is_insistent)
        self._was_asked = self._was_asked or is_insistent
        run.stop(f"{name} was received", signal=number)

    def _is_last(self, run: Run) -> bool:
        """Return whether an insistent signal ends the run at once."""
        # The first one counts by itself, not by run.is_interrupted: a run that is stopping for
        # another reason still gets one warning.
        return self._was_asked or (self._is_ending and not run.is_interrupted)

    def _is_repeated(self, run: Run, number: int) -> bool:
        """Return whether a signal has reached this rank before, by another way."""
        if run.world.is_alone and not is_launched():
            return False
        now = monotonic()
        before, self._received[number] = self._received.get(number), now
        return before is not None and now - before < REPEATED

    def _restore(self) -> None:
        for number, handler in self._before.items():
            # None: the handler was not set from Python and cannot be restored from here.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)  # type: ignore[arg-type]
        self._before.clear()


def _announce(run: Run, name: str, *, is_insistent: bool) -> None:
    again = "send it again" if is_insistent else "Ctrl-C or SIGTERM, sent twice, is the way"
    text = f"{name}: ending after this iteration; {again} to end at once."
    # A launcher also signals the ranks when one of them was killed, which the user must not take
    # for a signal from outside. Our own shows those itself, once for all ranks.
    if is_launched() or run._internals.ranks.is_broken:
        for log in current_logs():
            log.note(text)
    else:
        _log.warning(text)


def restore_signal_handlers(run: Run) -> None:
    """Restore the signal handlers that were set before a run; called when all of it has ended."""
    for hook in run.hooks:
        if isinstance(hook, StopOnSignal):
            hook.restore_handlers()


def _is_free(number: signal.Signals) -> bool:
    """Return whether this hook may handle a signal, considering its current handler."""
    current = signal.getsignal(number)
    if number.name in ("SIGINT", "SIGTERM"):
        return True
    if number.name == "SIGHUP":  # nohup ignores it on purpose.
        return current == signal.SIG_DFL
    return current in (signal.SIG_DFL, signal.SIG_IGN)
