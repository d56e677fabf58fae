"""Which lines make the host read from the device, iteration by iteration."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch.utils.data import DataLoader, TensorDataset

from hookloop.engine.hook import Hook
from hookloop.engine.run import Run
from hookloop.testing.checks import tiny_trainer
from hookloop.testing.counting_device import CountingDevice, HostRead
from hookloop.trainer.trainer import Trainer

ITERS = 12
"""Iterations of the one epoch. The first two set things up, and the last ends it."""


class _Split(Hook):
    """Notes in which iteration each read was made, from one begin of an iteration to the next."""

    name = "split_reads"
    priority = 0
    draws_random_numbers = False

    def __init__(self, device: CountingDevice) -> None:
        self._device = device
        self.begins: list[int] = []

    def before_train_iter(self, run: Run) -> None:
        self.begins.append(len(self._device.reads))


def host_reads(
    *hooks: Hook,
    make_trainer: Callable[..., Trainer] = tiny_trainer,
    **options: Any,  # noqa: ANN401 - as Trainer takes them
) -> list[list[HostRead]]:
    """Train one epoch of twelve iterations on a `CountingDevice`; return the reads of each.

    The first list is what was read before the first iteration; the last one has what came after
    the last iteration too, such as a validation and a checkpoint.

    Args:
        hooks: The hooks that take part.
        make_trainer: Called with the hooks and with arguments of `hookloop.Trainer`.
        options: More arguments for it.
    """
    given: dict[str, Any] = {"train_data": _data(), "max_epochs": 1} | options
    with TemporaryDirectory(prefix="hookloop-test-") as folder, CountingDevice() as device:
        split = _Split(device)
        trainer = make_trainer(
            split, *hooks, run_dir=Path(folder) / "run", device=device.name, **given
        )
        trainer.train()
    cuts = [0, *split.begins, len(device.reads)]
    return [device.reads[begin:end] for begin, end in itertools.pairwise(cuts)]


def assert_no_host_reads(
    make_hook: Callable[[], Hook],
    *,
    make_trainer: Callable[..., Trainer] = tiny_trainer,
    **options: Any,  # noqa: ANN401 - as Trainer takes them
) -> None:
    """Check that a hook lets the device run: in an iteration in which nothing is due, no read.

    A read makes Python wait until the device has computed all that it was asked for. A hook keeps
    tensors instead, and reads them at its interval or at the end of an epoch.

    Args:
        make_hook: The hook's class, or a function that makes one with an interval of more than
            twelve iterations.
        make_trainer: As for `host_reads`.
        options: More arguments for it.
    """
    hook = make_hook()
    reads = host_reads(hook, make_trainer=make_trainer, **options)
    found = [(number, read) for number, of_iter in enumerate(reads) for read in of_iter]
    found = [(number, read) for number, read in found if 2 < number < len(reads) - 1]
    lines = sorted({str(read) for _, read in found})
    assert not found, (
        f"{type(hook).__name__}: the host reads from the device {len(found)} times in "
        f"{len(reads) - 4} iterations in which nothing is due: {'; '.join(lines)}. Keep the "
        "tensor, and read it at an interval."
    )


def _data() -> DataLoader[Any]:
    inputs = torch.randn(4 * ITERS, 4, generator=torch.Generator().manual_seed(1))
    return DataLoader(TensorDataset(inputs, inputs[:, :3].argmax(1)), batch_size=4, shuffle=True)
