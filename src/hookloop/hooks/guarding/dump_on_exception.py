"""`DumpOnException`: write down the state of a run that fails."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hookloop.data.portable import named_tensors, write_portable
from hookloop.engine.hook import Hook
from hookloop.every import count_of
from hookloop.parallel.memory import memory_summary
from hookloop.runs.files import write_text
from hookloop.secret import redact

if TYPE_CHECKING:
    from torch import Tensor

    from hookloop.engine.run import Run


class DumpOnException(Hook):
    """Write traceback, progress, memory use and tensors into the run directory when a run fails.

    The text is ``exception_iter_<n>.txt``, the batch ``exception_iter_<n>.pt``, which
    ``torch.load(..., weights_only=True)`` reads. A rank other than the first adds its number to the
    names, since it alone knows its batch. An interrupt from the keyboard is not a failure.

    Args:
        batch: Whether to write the current batch.

    Example:
        >>> DumpOnException(batch=False).batch
        False
    """

    def __init__(self, batch: bool = True) -> None:
        self.batch = batch

    def on_exception(self, run: Run, error: BaseException) -> None:
        if not isinstance(error, Exception):  # KeyboardInterrupt, SystemExit
            return
        rank = "" if run.world.is_main else f"_rank_{run.world.rank}"
        stem = f"exception_iter_{run.progress.iter}{rank}"
        # Tracebacks and error messages can quote secrets of the config.
        write_text(run.dir / f"{stem}.txt", redact("\n".join(_report(run, error))))
        if self.batch and run.batch is not None:
            write_portable(run.dir / f"{stem}.pt", {"batch": run.batch, "phase": run.phase})


def _report(run: Run, error: Exception) -> Iterator[str]:
    progress = run.progress
    yield "".join(traceback.format_exception(error))
    yield (
        f"in {run.phase}, stream '{run.stream}', after {count_of(progress.iter, 'iteration')} and "
        f"{count_of(progress.epoch, 'epoch')}; {count_of(progress.iter_in_epoch, 'iteration')} of "
        "this epoch done\n"
    )
    yield memory_summary(run.device)
    for name, value in (("batch", run.batch), ("output", run.output), ("loss", run.loss)):
        yield from (_describe(found, tensor) for found, tensor in named_tensors(value, name))
    for name, parameter in run.model.named_parameters():
        yield _describe(name, parameter)
        if parameter.grad is not None:
            yield _describe(f"{name}.grad", parameter.grad)
    yield ""


def _describe(name: str, tensor: Tensor) -> str:
    shape = f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)} on {tensor.device}"
    if not tensor.numel():
        return f"{name}: {shape}"
    # In double precision, so that large integers show their true range; MPS does not have it.
    values = tensor.detach().double() if tensor.device.type != "mps" else tensor.detach().float()
    count = int(values.isfinite().logical_not().sum())
    not_finite = f", {count} not finite" if count else ""
    return f"{name}: {shape}, {values.min():.4g} to {values.max():.4g}{not_finite}"
