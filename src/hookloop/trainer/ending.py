"""The end of a run: everything that has to happen then happens, whatever fails.

Other ranks learn of a failure, and a user's own loop that has changed nothing is rejected.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.parameter import is_lazy

from hookloop.engine.plan import fire
from hookloop.errors import ModelError
from hookloop.every import count_of
from hookloop.parallel.launched import is_launched

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
    for call in run._plan.after_run.singly():
        try:
            fire(call, run)
        except BaseException as error:  # noqa: BLE001 - raised again below; it may be a sys.exit()
            if isinstance(error, OSError) and is_of_directory(error, run.dir):
                run._plan.disable(call.hooks[0], "after_run", error)
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


_log = logging.getLogger("hookloop")


@contextmanager
def explaining(run: Run) -> Iterator[None]:
    """Raise `PeerFailed` where a connection broke because another rank failed."""
    try:
        yield
    except RuntimeError as error:
        failed = run._internals.ranks.failure_of_another(error, run.progress.iter)
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
        wait_for_readers(run)
        raise


def break_off(run: Run, error: BaseException) -> None:
    """Leave the other ranks because of a failure; a process that just exits is not one."""
    if not isinstance(error, SystemExit) or error.code:
        run._internals.ranks.break_off(error, run.progress.iter)


def wait_for_readers(run: Run) -> None:
    """After a failure: stay until the others know why, if they need this process for that."""
    if run._internals.ranks.is_broken:
        run._internals.ranks.wait_for_readers()


FEW = 10
"""So many iterations may do without an update: somebody looks at the batches."""


class Unchanged:
    """Notices that a user's own loop has changed neither the model nor what the optimizers step.

    The update is the user's, and so is how it changes the model; only at the end is it sure that
    nothing did: the call that steps the optimizer is missing.

    Args:
        run: The run, before the loop.
    """

    def __init__(self, run: Run) -> None:
        self._begin = run.progress.iter
        self._versions = [one._version for one in _tensors(run)]
        self._sums = [_sum_of(one) for one in _tensors(run)]

    def check_end(self, run: Run) -> None:
        """Reject a loop that made iterations and no update."""
        made = run.progress.iter - self._begin
        # A version says nothing of what is written past it, by a fused optimizer or through .data.
        if (
            made < FEW
            or run.is_interrupted
            or self._versions != [one._version for one in _tensors(run)]
            or any(optimizer.state for optimizer in run.optimizers.values())
            or self._sums != [_sum_of(one) for one in _tensors(run)]
        ):
            return
        raise ModelError(
            f"The loop made {count_of(made, 'iteration')} and changed nothing of the model: call "
            "loss.backward() and the optimizer's step() in it, or give step= and call train()."
        )


def _tensors(run: Run) -> Iterator[Tensor]:
    stepped = [
        one
        for optimizer in run.optimizers.values()
        for group in optimizer.param_groups
        for one in group["params"]
    ]
    yield from (
        one for one in (*run.model.parameters(), *run.model.buffers(), *stepped) if not is_lazy(one)
    )


def _sum_of(tensor: Tensor) -> tuple[Tensor | float, ...]:
    numbers = tensor.detach()
    if numbers.is_floating_point():
        return float(numbers.sum(dtype=torch.float64)), float(numbers.norm(dtype=torch.float64))
    return ()
