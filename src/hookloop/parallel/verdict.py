"""Why the ranks of a run failed, in one sentence, and whether to start them again."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass, replace

from hookloop.parallel.launch import Ended
from hookloop.parallel.launched import Report
from hookloop.parallel.rendezvous import NotMet
from hookloop.parallel.signals import STOP_SIGNALS

FAILED = 1


@dataclass(frozen=True)
class Cause:
    """Why the ranks failed.

    Attributes:
        messages: What happened, the first line as one sentence.
        code: The exit code for it.
        may_pass: Whether a new start may succeed.
        repeats: What tells it from other failures; a second one of the same kind does not pass.
            None if that says nothing, as for a kill.
        traceback: Where the exception comes from, if there was one.
    """

    messages: tuple[str, ...]
    code: int = FAILED
    may_pass: bool = True
    repeats: tuple[object, ...] | None = None
    traceback: str = ""


def find_cause(ended: Ended) -> Cause | None:
    """Return why the ranks failed, None if they did not.

    Most ranks fail because another one did: their broken connections are not the cause.
    """
    failed = sorted(
        (one for one in ended.reports.values() if one.blame), key=lambda one: one.moment
    )
    own = [one for one in failed if one.blame in ("user", "own")]
    if own:
        return _exception(own[0])
    if ended.lost is not None and ended.is_ended_for_lost:
        return Cause((f"{ended.lost}; the ranks here waited for its ranks, and were ended.",))
    silent = {rank: code for rank, code in ended.codes.items() if not _has_reported(rank, ended)}
    # SIGTERM is what torch's launcher ends the others with.
    sudden = {rank: code for rank, code in silent.items() if code != -signal.SIGTERM}
    for rank, code in (sudden or silent).items():
        return _silent_end(rank, code, ended.reports)
    # Those that another rank has told why know more than those with a broken connection.
    for one in sorted(failed, key=lambda one: one.blame != "peer"):
        cause = _of_another(one)
        more = () if ended.lost is None or cause.repeats is not None else (ended.lost,)
        return replace(cause, messages=(*cause.messages, *more))
    return None if ended.error is None else _not_started(ended.error)


def _not_started(error: Exception) -> Cause:
    if isinstance(error, NotMet):  # It has been waited for as long as it is worth.
        return Cause((str(error).rstrip(".") + ".",), may_pass=False)
    return Cause((f"the ranks could not be started: {type(error).__name__}: {error}",))


def _has_reported(rank: int, ended: Ended) -> bool:
    return rank in ended.reports and ended.reports[rank].exit_code is not None


def _exception(report: Report) -> Cause:
    if report.blame == "user":
        where = f"rank {report.rank}: " if report.rank else ""
        messages = tuple(f"{where}{message}" for message in report.messages)
        code = report.exit_code or FAILED
        return Cause(messages, code, may_pass=False, traceback=report.traceback)
    if report.iteration is None:
        # Before the training nothing is lost, and the same would happen again.
        what = (f"rank {report.rank} failed before the training: {report.messages[0]}",)
        return Cause(what, may_pass=False, traceback=report.traceback)
    return Cause(
        (f"rank {report.rank} failed in iteration {report.iteration}: {report.messages[0]}",),
        repeats=(report.error, report.iteration),
        traceback=report.traceback,
    )


def _silent_end(rank: int, code: int, reports: Mapping[int, Report]) -> Cause:
    # A rank that was killed had no time to say where; the others were at the same place.
    known = [one.iteration for one in reports.values() if one.iteration is not None]
    own = reports[rank].iteration if rank in reports else None
    reached = own if own is not None else max(known, default=None)
    where = "" if reached is None else f" after iteration {reached}"
    if code >= 0:
        return Cause((f"rank {rank} ended with exit code {code}{where}, without a reason.",))
    name = signal.Signals(-code).name
    if name in STOP_SIGNALS:  # Before it trained: later, a rank ends in order.
        return Cause((f"rank {rank} was ended by {name}{where}.",), 128 - code, may_pass=False)
    hint = ": by somebody, or by the system, which ran out of memory" if name == "SIGKILL" else ""
    return Cause((f"rank {rank} was killed by {name}{where}{hint}.",))


def _of_another(report: Report) -> Cause:
    """Return the cause that a rank of another node has told, or a lost connection."""
    told = re.search(r"rank (\d+) failed in iteration (\d+): ([\w.]+)", "\n".join(report.messages))
    if report.blame == "peer" and told is not None:
        # As the launcher of that rank decides, which knows the exception itself.
        is_ours = told[3].startswith("hookloop.")
        repeats = (told[3], int(told[2]))
        return Cause(
            report.messages, may_pass=not is_ours, repeats=repeats, traceback=report.traceback
        )
    what = "" if report.blame == "peer" else "the connection to another rank broke: "
    return Cause((f"rank {report.rank}: {what}{report.messages[0]}",))
