"""How ranks learn that another one has failed, and tell the others that they have."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hookloop.parallel.launched import is_launched

if TYPE_CHECKING:
    from hookloop.engine.run import Run

_log = logging.getLogger("hookloop")


@contextmanager
def explaining(run: Run) -> Iterator[None]:
    """Raise `PeerFailed` where a connection broke because another rank failed."""
    try:
        yield
    except RuntimeError as error:
        failed = run.ranks.failure_of_another(error, run.progress.iter)
        if failed is None:
            raise
        if not is_launched():  # The launcher shows the reason, once for all ranks.
            reason = str(failed).partition("\n")[0]
            _log.error("%s: rank %d ends with it.", reason, run.world.rank)
        raise failed from error


@contextmanager
def breaking_off(run: Run) -> Iterator[None]:
    """Let the other ranks know of a failure before anything is set up."""
    try:
        with explaining(run):
            yield
    except BaseException as error:
        break_off(run, error)
        linger(run)
        raise


def break_off(run: Run, error: BaseException) -> None:
    """Leave the other ranks because of a failure; a process that just exits is not one."""
    if not isinstance(error, SystemExit) or error.code:
        run.ranks.break_off(error, run.progress.iter)


def linger(run: Run) -> None:
    """After a failure: stay until the others know why, if they need this process for that."""
    if run.ranks.is_broken:
        run.ranks.linger()
