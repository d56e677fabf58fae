"""The end of a run: everything that has to happen then happens, whatever fails."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hookloop.engine.plan import fire

if TYPE_CHECKING:
    from hookloop.engine.run import Run

DISK = (errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO)
"""Errors of a disk, which a call that writes may raise without naming the file."""


def fire_after_run(run: Run) -> None:
    """Make the calls of after_run even if some fail, since hooks clean up there.

    A hook that cannot write to the run's directory any more is reported and left out: the training
    is done, and an exception would cost the script its trained weights.
    """
    failures: list[BaseException] = []
    # One by one, because a call of all hooks would end at the first that fails.
    for call in run.plan.after_run.singly():
        try:
            fire(call, run)
        except BaseException as error:  # noqa: BLE001 - raised again below; it may be a sys.exit()
            if isinstance(error, OSError) and is_of_directory(error, run.dir):
                run.plan.disable(call.hooks[0], "after_run", error)
            else:
                failures.append(error)
    if failures:
        raise failures[0]


def is_of_directory(error: OSError, directory: Path) -> bool:
    """Return whether an error comes from writing to a directory that cannot be written.

    >>> is_of_directory(PermissionError(13, "no", "runs/one/model.pt"), Path("runs/one"))
    True
    >>> is_of_directory(FileNotFoundError(2, "no", "data.csv"), Path("runs/one"))
    False
    """
    if error.errno in DISK:
        return True
    names = (error.filename, error.filename2)
    return any(isinstance(n, str | Path) and Path(n).is_relative_to(directory) for n in names)


def do_at_end(failure: BaseException | None, action: Callable[..., None], *args: object) -> None:
    """Do something at the end of a run; its failure never hides why the run ended."""
    try:
        action(*args)
    except Exception as error:
        if failure is None:
            raise
        # The notes name the hook, which would be lost with the exception.
        notes = "; ".join(getattr(error, "__notes__", []))
        failure.add_note(f"also, while ending the run: {type(error).__name__}: {error} ({notes})")
