"""The signals that ask a process to end, so that it can save first."""

from __future__ import annotations

import signal

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGXCPU")

STOP_SIGNALS = tuple(name for name in _NAMES if name in signal.Signals.__members__)
"""The names of those that this system has; Windows has only a few of them.

In this order: Ctrl-C; a request to end by the system or an orchestrator; a lost connection;
Ctrl-backslash; two warnings of a cluster before the time limit or before the node is taken away;
the limit of processor time.
"""
