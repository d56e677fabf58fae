"""Describe batches and outputs in messages."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from itertools import islice

from torch import Tensor

from hookloop.errors import HookloopError

NO_OUTPUT = object()


def note_batch(
    error: Exception, phase: str, iteration: int, batch: object, output: object = NO_OUTPUT
) -> None:
    """Add phase, batch and shapes as a note to an error of torch or of the user's code.

    Args:
        error: The error.
        phase: ``"train"``, ``"val"`` or ``"test"``.
        iteration: Iterations completed.
        batch: The batch with which it happened.
        output: The output, if the model had already returned one.
    """
    if isinstance(error, HookloopError):  # Our own messages explain the problem.
        return
    where = f"in training, iteration {iteration + 1}"
    if phase != "train":
        where = f"in the phase {phase}, after iteration {iteration}"
    note = f"{where}: the batch is {describe(batch)}"
    if output is not NO_OUTPUT:
        note += f", the output is {describe(output)}"
        if isinstance(output, tuple | list):
            # Losses of torch fail on a tuple with an error about attributes of a tensor.
            note += (
                f". The model returned a {type(output).__name__}: take the part that you need, "
                "such as output[0], in loss= and metrics=, or write step="
            )
    error.add_note(note)


def describe(value: object) -> str:
    """Show what a batch or an output is made of: types, shapes, and devices other than the CPU.

    >>> import torch
    >>> describe((torch.zeros(4, 3), {"label": torch.zeros(4, dtype=torch.int64)}))
    '(float32[4, 3], {label: int64[4]})'
    """
    if isinstance(value, Tensor):
        where = "" if value.device.type == "cpu" else f" on {value.device}"
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}{where}"
    if isinstance(value, Mapping):
        shown = [f"{key}: {describe(part)}" for key, part in islice(value.items(), _SHOWN)]
        return f"{{{', '.join(shown + _rest(value))}}}"
    if isinstance(value, tuple | list):
        inside = ", ".join([describe(part) for part in value[:_SHOWN]] + _rest(value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    shape = getattr(value, "shape", None)  # Such as an array of NumPy.
    return type(value).__name__ + (f"{list(shape)}" if isinstance(shape, tuple) else "")


_SHOWN = 8


def _rest(parts: Sized) -> list[str]:
    return [f"... {len(parts)} in all"] if len(parts) > _SHOWN else []
