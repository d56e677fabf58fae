"""Which signals ask a process to end, so that it can save first."""

from __future__ import annotations

import signal

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGXCPU")

STOP_SIGNALS = tuple(name for name in _NAMES if name in signal.Signals.__members__)
"""The names of those that this system has: Windows lacks most of them.

Ctrl-C; the end that a system or an orchestrator asks for; a lost connection; Ctrl-backslash; the
warnings of a cluster before the time is over or the node is taken; the limit of processor time.
"""
