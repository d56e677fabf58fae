"""The ways to compute output and loss: with ``loss=``, by the model itself, or by a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NoReturn

from torch import Tensor

from hookloop.core.update import Forward, LossOf, Step
from hookloop.data.batch import pair_of
from hookloop.data.description import describe
from hookloop.errors import DataError, ModelError

if TYPE_CHECKING:
    from hookloop.core.run import Run


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


def forward_step(step: Step) -> Forward:
    """Let the user's step do everything."""

    def forward(run: Run) -> object:
        return step(run, run.batch)

    return forward


def _reject_no_loss(who: str) -> NoReturn:
    # Most often a `return` was forgotten. Only a step may skip an update on purpose.
    raise ModelError(f"{who} returned None: return the loss. Only a step= may skip an update.")
