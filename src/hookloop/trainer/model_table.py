"""A table of a model: its modules, what they return, and what of it trains."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from hookloop.data.batch import pair_of
from hookloop.data.description import describe, note_batch, note_module
from hookloop.data.random.states import GeneratorStates

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import Tensor

Forward = Callable[[object], object]

LONGEST_OUTPUT = 60
"""Characters of an output that the printed table shows."""


@dataclass(frozen=True)
class ModuleRow:
    """One module.

    Attributes:
        path: Where it is in the model; empty for the model itself.
        kind: Its class.
        depth: 0 for the model itself.
        output: What it returned last; empty if it was not called, or no batch was given.
        calls: How often it was called with the batch.
        parameters: Numbers in its parameters, with those of the modules inside.
        trainable: How many of them train.
    """

    path: str
    kind: str
    depth: int
    output: str
    calls: int
    parameters: int
    trainable: int


@dataclass(frozen=True)
class ModelTable:
    """The modules of a model, in their order; the first row is the model as a whole.

    >>> print(describe_model(nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2)), torch.zeros(3, 4)))
    module       output         parameters  trains
    Sequential   float32[3, 2]          58    100%
      0: Linear  float32[3, 8]          40    100%
      1: Linear  float32[3, 2]          18    100%
    """

    rows: list[ModuleRow]

    @property
    def parameters(self) -> int:
        """Numbers in all parameters; one that several modules share counts once."""
        return self.rows[0].parameters

    @property
    def trainable(self) -> int:
        """How many of them train."""
        return self.rows[0].trainable

    def to_depth(self, depth: int) -> ModelTable:
        """Return the table without modules that are deeper."""
        return ModelTable([row for row in self.rows if row.depth <= depth])

    def __str__(self) -> str:
        lines = [("module", "output", "parameters", "trains"), *map(_cells, self.rows)]
        name, output, count, share = (max(map(len, column)) for column in zip(*lines, strict=True))
        return "\n".join(
            f"{row[0]:<{name}}  {row[1]:<{output}}  {row[2]:>{count}}  {row[3]:>{share}}".rstrip()
            for row in lines
        )


def describe_model(
    model: nn.Module, batch: object = None, *, forward: Forward | None = None
) -> ModelTable:
    """List the modules of a model with their parameters, and their outputs if a batch is given.

    The batch goes through the model once, in evaluation mode and without gradients. Modes, buffers
    and random numbers stay as they were.

    Args:
        model: The model.
        batch: One batch. Of a pair (inputs, targets), the model gets the inputs; it gets a mapping
            as keyword arguments, and anything else as it is.
        forward: Gives a batch to the model in another way.
    """
    outputs: dict[nn.Module, tuple[str, int]] = {}
    if batch is not None:
        with _looking_at(model, outputs):
            try:
                (forward or (lambda given: _call(model, given)))(batch)
            except Exception as error:
                note_batch(error, "val", 0, batch)
                note_module(error, model)
                raise
    return ModelTable(
        [
            _row(path, module, *outputs.get(module, ("", 0)))
            for path, module in model.named_modules()
        ]
    )


@contextmanager
def _looking_at(model: nn.Module, outputs: dict[nn.Module, tuple[str, int]]) -> Iterator[None]:
    """Note what modules return, and change nothing else."""

    def note(module: nn.Module, args: object, output: object) -> None:
        outputs[module] = (describe(output), outputs.get(module, ("", 0))[1] + 1)

    modes = [(module, module.training) for module in model.modules()]
    # A module may count its calls in a buffer, in evaluation mode too.
    buffers = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
    randomness = GeneratorStates.now()
    handles = [module.register_forward_hook(note) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for handle in handles:
            handle.remove()
        for module, is_training in modes:
            module.training = is_training
        with torch.no_grad():
            for buffer, value in buffers:
                buffer.copy_(value)
        randomness.restore()


def _call(model: nn.Module, batch: object) -> object:
    if (pair := pair_of(batch)) is not None:
        return model(pair[0])
    if isinstance(batch, dict):
        return model(**batch)
    return model(*batch) if isinstance(batch, tuple | list) else model(batch)


def _row(path: str, module: nn.Module, output: str, calls: int) -> ModuleRow:
    depth = path.count(".") + 1 if path else 0
    parameters = list(module.parameters())
    trainable = [parameter for parameter in parameters if parameter.requires_grad]
    kind = type(module).__name__
    return ModuleRow(
        path, kind, depth, output, calls, count_parameters(parameters), count_parameters(trainable)
    )


def count_parameters(parameters: Iterable[Tensor]) -> int:
    """Count the numbers in parameters; a lazy module has none before its first batch."""
    return sum(parameter.numel() for parameter in parameters if not is_lazy(parameter))


def _cells(row: ModuleRow) -> tuple[str, str, str, str]:
    name = row.path.rpartition(".")[2]
    label = f"{'  ' * row.depth}{name}: {row.kind}" if row.path else row.kind
    output = row.output
    if len(output) > LONGEST_OUTPUT:
        output = f"{output[: LONGEST_OUTPUT - 3]}..."
    share = f"{row.trainable / row.parameters:.0%}" if row.parameters else ""
    return label, output, f"{row.parameters:,}" if row.parameters else "", share
