"""What a rank tells the launcher that started it: ``hookloop train --ranks``.

An exit code says too little: which rank failed first, why, and whether a signal ended the run in
order. So each rank keeps a small file, its report, in a private directory of the launcher.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from hookloop.errors import ConfigError, HookloopError
from hookloop.parallel.failure import PeerFailed, is_broken_connection

LAUNCH = "HOOKLOOP_LAUNCH"
"""The variable with the launcher's process number and the directory of the reports."""

RESTART = "HOOKLOOP_RESTART"
"""The variable that says how often the ranks have been started again."""

LONGEST = 20_000
"""How many characters of a traceback are kept, from its end."""

Blame = Literal["", "user", "own", "peer", "connection"]
"""Why a rank failed: the user has to fix it, its own exception, another rank, or a connection."""

_PR_SET_PDEATHSIG = 1
_SECONDS_BETWEEN_LOOKS = 1.0


@dataclass(frozen=True)
class Report:
    """The report of a rank.

    Attributes:
        rank: Its number among all.
        pid: Its process.
        exit_code: The code that it would have ended with alone; None until it ends by itself.
        is_in_order: Whether the run ended in order: completed, or saved after a signal.
        iteration: The completed iterations, once it trains.
        blame: Why it failed; empty if it did not.
        error: The class of the exception, with its module.
        messages: What a process alone would have shown, line by line.
        traceback: Where the exception comes from.
        moment: When it ended.
    """

    rank: int
    pid: int
    exit_code: int | None = None
    is_in_order: bool = False
    iteration: int | None = None
    blame: Blame = ""
    error: str = ""
    messages: tuple[str, ...] = ()
    traceback: str = ""
    moment: float = 0.0


_own: tuple[Path, Report] | None = None
"""The file and the report of this process, if a launcher started it."""


def join_launcher(environment: Mapping[str, str] = os.environ) -> None:
    """Report to the launcher that started this process, if one did, and end when it ends."""
    place = environment.get(LAUNCH)
    if place is None:
        return
    # Processes that this one starts are not ranks.
    os.environ.pop(LAUNCH, None)
    parent, _, folder = place.partition(":")
    end_with(int(parent))
    rank = int(environment.get("RANK", "0"))
    _write(Path(folder) / f"rank-{rank}.json", Report(rank, os.getpid()))


def is_launched() -> bool:
    """Return whether a launcher of ours started this process, and shows why and how it ends."""
    return _own is not None


def restarts_so_far() -> int:
    """Return how often the launcher of this process has started the ranks again."""
    return int(os.environ.get(RESTART, "0")) if _own is not None else 0


def report_iteration(iteration: int) -> None:
    """Remember how far the training got, for the report of a failure."""
    if _own is not None:
        path, report = _own
        _write(path, replace(report, iteration=iteration))


def report_end(code: int) -> int:
    """Report that the run ended in order; return the exit code for the process.

    torch's launcher takes any code but 0 for a failure, and ends the other ranks.
    """
    if _own is None:
        return code
    path, report = _own
    # Whoever has reported a failure before stays with it.
    if not report.blame:
        _write(path, replace(report, exit_code=code, is_in_order=True, moment=time.time()))
        return 0
    return code


def report_failure(error: BaseException, code: int) -> bool:
    """Report a failure; return whether there is a launcher that will show it."""
    if _own is None:
        return False
    path, report = _own
    problems = error.problems if isinstance(error, ConfigError) else (error,)
    only = "".join(traceback.format_exception_only(error)).strip()
    is_worded = isinstance(error, HookloopError | PeerFailed)
    shown = [str(one) for one in problems] if is_worded else [only]
    told = error.traceback if isinstance(error, PeerFailed) else None
    failed = replace(
        report,
        exit_code=code,
        blame=_blame(error),
        error=only.partition(":")[0].strip(),
        messages=tuple(shown),
        traceback=(told or "".join(traceback.format_exception(error)))[-LONGEST:],
        moment=time.time(),
    )
    _write(path, failed)
    return True


def read_reports(folder: Path) -> dict[int, Report]:
    """Return the reports of the ranks of this node, by rank."""
    reports = []
    for path in folder.glob("rank-*.json"):
        # A launcher that was asked to end may look at any moment, also while the directory goes.
        with suppress(OSError):
            fields = json.loads(path.read_text(encoding="utf-8"))
            reports.append(Report(**{**fields, "messages": tuple(fields["messages"])}))
    return {report.rank: report for report in sorted(reports, key=lambda one: one.rank)}


def _write(path: Path, report: Report) -> None:
    global _own  # noqa: PLW0603 - a process has one launcher, as it has one parent
    _own = (path, report)
    # Without its directory the launcher is gone, and nobody reads this.
    with suppress(OSError):
        # Renamed, so that the launcher never reads half of it.
        part = path.with_suffix(".part")
        part.write_text(json.dumps(asdict(report)), encoding="utf-8")
        part.replace(path)


def _blame(error: BaseException) -> Blame:
    if isinstance(error, PeerFailed):
        return "peer"
    if isinstance(error, HookloopError):
        return "user"
    return "connection" if is_lost_connection(error) else "own"


def is_lost_connection(error: BaseException) -> bool:
    """Return whether an exception is what the end of another rank looks like here."""
    if not isinstance(error, RuntimeError):
        return False
    frames = traceback.extract_tb(error.__traceback__)
    is_inside = bool(frames) and "torch/distributed/" in frames[-1].filename.replace("\\", "/")
    # A handshake fails inside of torch, with words of its own.
    return is_inside or is_broken_connection(error)


def end_with(parent: int) -> None:
    """End this process when its launcher ends, however that happens."""
    if sys.platform == "linux":
        # By the system: a thread that looks would be one more to be forked by data loaders.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    elif os.name != "nt":
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    if os.name != "nt" and os.getppid() != parent:  # It has ended meanwhile.
        os._exit(1)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    os.kill(os.getpid(), signal.SIGKILL)
