"""Describe batches and outputs in messages."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from itertools import islice
from types import TracebackType

from torch import Tensor, nn

from hookloop.errors import HookloopError

NO_OUTPUT = object()


def note_batch(
    error: Exception, phase: str, iteration: int, batch: object, output: object = NO_OUTPUT
) -> None:
    """Add phase, batch and shapes as a note to an error of torch or of the user's code.

    Args:
        error: The error.
        phase: ``"train"``, ``"val"``, ``"test"`` or ``"predict"``.
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
    if str(error) == "'Run' object is not callable":  # Other engines hand the model to a step.
        error.add_note("A step is called as step(run, batch): the model is run.model")


def note_module(error: Exception, model: nn.Module) -> None:
    """Add the path of the module in which an error was raised, as a note.

    It is found in the traceback, so that it costs nothing until there is an error.

    Args:
        error: The error, while it is being handled.
        model: The model that was called.
    """
    if isinstance(error, HookloopError):
        return
    called = _modules_in(error.__traceback__)
    names = {id(module): name for name, module in model.named_modules()}
    known = next((module for module in reversed(called) if id(module) in names), None)
    if called and called[-1] is not known:  # A loss, or a module that is not registered.
        error.add_note(f"in {show_module(called[-1])}, which is not a part of the model")
    if known is not None:
        path = ".".join(filter(None, ("model", names[id(known)])))
        error.add_note(f"in {path} ({show_module(known)})")


def _modules_in(traceback: TracebackType | None) -> list[nn.Module]:
    """List the modules whose methods were running, the outermost first."""
    found: list[nn.Module] = []
    while traceback is not None:
        owner = traceback.tb_frame.f_locals.get("self")
        if isinstance(owner, nn.Module):
            found.append(owner)
        traceback = traceback.tb_next
    return found


def show_module(module: nn.Module) -> str:
    """Show a module in one line, without the modules inside."""
    name = type(module).__name__
    try:
        details = module.extra_repr()
    except Exception:  # noqa: BLE001 - of the user's class, and of a module that has just failed
        return name
    return f"{name}({' '.join(details.split())})"


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
