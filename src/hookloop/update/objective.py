"""What an update computes: output and loss, by ``loss=``, by the model itself, or by a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Literal, NoReturn, cast

import torch
from torch import Tensor

from hookloop.data.batch import pair_of
from hookloop.data.description import describe
from hookloop.data.ranks.place import losses_of_streams
from hookloop.errors import DataError, ModelError, SkippedUpdateError
from hookloop.update.microbatches import loss_or_zero

if TYPE_CHECKING:
    from hookloop.engine.run import Run
    from hookloop.update.update import Forward, LossOf, Step

Precision = Literal["fp32", "bf16", "fp16"]


def autocast(precision: Precision, device: torch.device) -> AbstractContextManager[None] | None:
    """Return the context in which forward and loss are computed, or None for full precision."""
    if precision == "fp32":
        return None
    dtype = torch.bfloat16 if precision == "bf16" else torch.float16
    return torch.autocast(device.type, dtype=dtype)


def forward_inputs(run: Run) -> object:
    """Give the model the inputs of a pair (inputs, targets), or of a mapping with both."""
    batch = run.batch
    if isinstance(batch, (tuple, list)) and len(batch) == 2:  # `is_pair`, without its call.
        return run.model(batch[0])
    if (pair := pair_of(batch)) is not None:
        return run.model(pair[0])
    if run.phase == "train":
        raise DataError(
            f"loss= needs batches of (inputs, targets), or mappings with 'input' and 'target'; "
            f"train_data gives {describe(batch)}: change the batches, or write step=."
        )
    return run.model(batch)


def loss_from(loss: Callable[..., Tensor | None]) -> LossOf:
    """Compare the output with the targets of a pair, or of a mapping with inputs and targets."""

    def loss_of(run: Run) -> Tensor | None:
        batch = run.batch
        is_two = isinstance(batch, (tuple, list)) and len(batch) == 2
        pair = batch if is_two else pair_of(batch)
        if pair is None:  # Data without targets.
            return None
        value = loss(run.output, pair[1])
        return value if value is not None else _reject_no_loss("loss=")

    return loss_of


def forward_all(run: Run) -> object:
    """Give the model the whole batch; it returns its loss."""
    batch = run.batch
    if isinstance(batch, Mapping):
        output = run.model(**batch)
    else:
        output = run.model(*batch) if isinstance(batch, tuple | list) else run.model(batch)
    if output is None and run.phase == "train":
        _reject_no_loss("The model")
    return output


def forward_step(step: Step, declare: Callable[[Run], None] | None = None) -> Forward:
    """Let the user's step do everything; ``declare`` hears that it skips its update on purpose."""

    def forward(run: Run) -> object:
        try:
            return step(run, run.batch)
        except SkippedUpdateError:
            if declare is not None:
                declare(run)
            return None

    return forward


def loss_in_output(run: Run) -> Tensor | None:
    """Find the loss in what a step or the model returned."""
    output = run.output
    if isinstance(output, Mapping):
        if "loss" in output:
            if isinstance(output["loss"], dict):  # Of each stream.
                parts = losses_of_streams(output, run.place)
                # The parts stand beside the whole, like other numbers of a step.
                shown = {f"{name}_loss": loss.detach() for name, loss in parts.items()}
                run.output = {**shown, **output}
                return cast("Tensor", sum(parts.values()))
            loss = cast("Tensor", output["loss"])
            return loss_or_zero(loss, output["weight"]) if "weight" in output else loss
        if run.phase != "train":  # An evaluation may do without a loss.
            return None
        raise ModelError(
            f"No 'loss' among what was returned: {', '.join(map(str, output)) or 'nothing'}."
        )
    if isinstance(output, Tensor) or output is None:
        return output
    found: Tensor | None = getattr(output, "loss", None)
    if found is None and run.phase == "train":
        raise ModelError(_describe_no_loss(output))
    return found


def _reject_no_loss(who: str) -> NoReturn:
    # Most often a `return` was forgotten. Only a step may skip an update on purpose.
    raise ModelError(f"{who} returned None: return the loss. Only a step= may skip an update.")


def _describe_no_loss(output: object) -> str:
    """Return what is wrong with something that was returned in place of a loss."""
    kind = type(output).__name__
    if isinstance(output, int | float):
        return (
            f"A {kind} was returned as the loss, and a number has no gradient: return the tensor "
            "itself, without .item() or float()."
        )
    if isinstance(output, list | tuple):
        return (
            f"A {kind} was returned, and which part is the loss is not known: return the loss, or "
            "a mapping, {'loss': loss, 'output': output}."
        )
    return (
        f"A {kind} was returned, which has no loss: return the loss, or a mapping with 'loss', or "
        "give loss=."
    )
