"""Join the outputs for the batches of a stream into one output for all samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from hookloop.data.batch import move_tensors
from hookloop.errors import DataError

CPU = torch.device("cpu")

_IN_PYTHON = (
    "In Python, predict() without to= returns the outputs as they are, and to=function gets them "
    "batch by batch."
)


def to_cpu(output: object) -> object:
    """Copy an output to main memory, where it does not share memory with a batch any more."""
    return move_tensors(output, CPU, lambda tensor: tensor.detach().to(CPU, copy=True))


def join(outputs: Sequence[object], sizes: Sequence[int]) -> object:
    """Join outputs along the samples, in order; containers keep their form.

    A tensor without a row per sample, and any object that is not a container, is kept in a list,
    one per batch. Rows of different shapes are kept in a list, one per sample.

    Args:
        outputs: One per batch.
        sizes: How many samples each batch has.

    >>> join([{"x": torch.ones(2)}, {"x": torch.zeros(1)}], [2, 1])
    {'x': tensor([1., 1., 0.])}
    >>> join([["cat", "dog"], ["owl"]], [2, 1])
    ['cat', 'dog', 'owl']
    """
    first = outputs[0]
    if all(isinstance(one, Tensor | np.ndarray) for one in outputs):
        return _join_arrays(outputs, sizes)
    if all(isinstance(one, Mapping) for one in outputs):
        return _join_mappings(cast("Sequence[Mapping[object, object]]", outputs), sizes)
    if all(isinstance(one, tuple | list) for one in outputs):
        rows = cast("Sequence[Sequence[object]]", outputs)
        if _are_samples(rows, sizes):
            return [sample for one in rows for sample in one]
        if len({len(one) for one in rows}) == 1:
            parts = [join(column, sizes) for column in zip(*rows, strict=True)]
            # A named tuple takes its values as separate arguments.
            return cast("Callable[[object], object]", getattr(first, "_make", type(first)))(parts)
    return None if all(one is None for one in outputs) else list(outputs)


def _join_arrays(outputs: Sequence[Any], sizes: Sequence[int]) -> object:
    pairs = list(zip(outputs, sizes, strict=True))
    if any(one.ndim == 0 or len(one) != size for one, size in pairs):
        return list(outputs)
    if len({tuple(one.shape[1:]) for one in outputs}) > 1:
        return [row for one in outputs for row in one]
    return torch.cat(list(outputs)) if isinstance(outputs[0], Tensor) else np.concatenate(outputs)


def _join_mappings(
    outputs: Sequence[Mapping[object, object]], sizes: Sequence[int]
) -> dict[object, object]:
    keys = outputs[0].keys()
    for number, one in enumerate(outputs, 1):
        if one.keys() != keys:
            raise DataError(
                f"The output of batch {number} has the entries {', '.join(map(str, one))}, and "
                f"that of the first {', '.join(map(str, keys))}: return the same for each batch."
            )
    return {key: join([one[key] for one in outputs], sizes) for key in keys}


def _are_samples(outputs: Sequence[Sequence[object]], sizes: Sequence[int]) -> bool:
    """Return whether lists have an entry per sample, and not parts that have a row per sample."""
    pairs = list(zip(outputs, sizes, strict=True))
    if any(len(one) != size for one, size in pairs):
        return False
    # A function returns several results as a tuple, so only plain values in it are samples.
    if any(isinstance(one, tuple) for one in outputs):
        return not hasattr(outputs[0], "_fields") and all(
            isinstance(entry, str | int | float) for one in outputs for entry in one
        )
    arrays = [
        (entry, size)
        for one, size in pairs
        for entry in one
        if isinstance(entry, Tensor | np.ndarray)
    ]
    # All of them: an entry of some sample may have as many rows as there are samples, by chance.
    return not arrays or any(not array.ndim or len(array) != size for array, size in arrays)


def by_name(
    output: object, size: int, left_out: set[str], name: str = "output"
) -> dict[str, object]:
    """Return the parts of an output that have an entry per sample, by the names of columns.

    Args:
        output: The output for a batch.
        size: How many samples the batch has.
        left_out: Gets the entries of a mapping that have no row per sample, such as a loss.
        name: What the output is called.

    Raises:
        DataError: If the output, or a part of a tuple, has no entry per sample.

    >>> sorted(by_name((torch.ones(2), {"scores": torch.ones(2, 3)}), 2, set()))
    ['output_0', 'output_1_scores']
    """
    if isinstance(output, Mapping):
        begin = "" if name == "output" else f"{name}_"
        parts = {f"{begin}{key}": part for key, part in output.items()}
    elif isinstance(output, Tensor | np.ndarray):
        if output.ndim == 0 or len(output) != size:
            raise DataError(
                f"'{name}' of the output has the shape {tuple(output.shape)} for {size} samples: "
                f"a table needs a row per sample. {_IN_PYTHON}"
            )
        return {name: output}
    elif isinstance(output, tuple | list) and not _are_samples([output], [size]):
        parts = {f"{name}_{index}": part for index, part in enumerate(output)}
    elif isinstance(output, tuple | list) and all(isinstance(o, str | int | float) for o in output):
        return {name: output}
    else:
        raise DataError(
            f"'{name}' of the output is a {type(output).__name__}, which fits no table. "
            f"{_IN_PYTHON}"
        )
    found: dict[str, object] = {}
    for key, part in parts.items():
        if part is None:
            continue
        try:
            found |= by_name(part, size, left_out, key)
        except DataError:
            if not isinstance(output, Mapping):
                raise
            left_out.add(key)  # A loss, say, or a cache: what else is in the mapping is a table.
    return found
