"""`StopOnSignal`: Ctrl-C and SIGTERM end a run in order."""

from __future__ import annotations

import logging
import os
import signal
import threading
from types import FrameType
from typing import TYPE_CHECKING

from hookloop.core.hook import Hook
from hookloop.core.priority import Priority
from hookloop.errors import HookError, nearest

if TYPE_CHECKING:
    from hookloop.core.run import Run

_log = logging.getLogger("hookloop")


class StopOnSignal(Hook):
    """On the first signal finish the iteration and end the run in order; on the second end at once.

    The handlers that were there before come back when the run ends. A run in another thread than
    the main one gets no signals, and this hook does nothing there.

    Args:
        signals: Names of the signals to obey.

    Example:
        >>> StopOnSignal(signals=["SIGTERM"]).signals
        (<Signals.SIGTERM: 15>,)
    """

    priority = Priority.HIGHEST
    draws_random_numbers = False

    def __init__(self, signals: tuple[str, ...] | list[str] = ("SIGINT", "SIGTERM")) -> None:
        known = signal.Signals.__members__
        for name in signals:
            if name not in known:
                raise HookError(f"StopOnSignal: no signal '{name}'.{nearest(name, known)}")
        self.signals = tuple(known[name] for name in signals)
        self._before: dict[int, object] = {}
        self._run: Run | None = None
        self._was_told = False

    def before_run(self, run: Run) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self._run, self._was_told = run, False
        for number in self.signals:
            self._before[number] = signal.signal(number, self._receive)

    def after_run(self, run: Run) -> None:
        self._restore()
        self._run = None

    def _receive(self, number: int, frame: FrameType | None) -> None:
        name = signal.Signals(number).name
        # Not whether the run is interrupted: one that stops for another reason has to be told, too.
        if self._run is None or self._was_told:
            self._restore()
            os.kill(os.getpid(), number)
            return
        _log.warning("%s: ending after this iteration; send it again to end at once.", name)
        self._was_told = True
        self._run.stop(f"{name} was received", signal=number)

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._before.clear()
