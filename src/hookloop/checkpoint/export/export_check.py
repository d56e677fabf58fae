"""Run an exported file and compare its output with that of the model."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import cast

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from hookloop.checkpoint.export.export import Example
from hookloop.errors import ModelError

LARGEST_DIFFERENCE = 1e-3
"""The largest difference, relative to the largest output, that other arithmetic may cause."""


def compare(model: torch.nn.Module, path: Path, format: str, example: Example) -> float | None:
    """Return the largest difference between the outputs of a file and of the model.

    It is relative to the largest output of the model.

    Args:
        model: The model, on the CPU and in evaluation mode.
        path: What was written.
        format: In which format.
        example: The inputs.

    Returns:
        None if the file cannot be run here: safetensors has no program, and ONNX is run by the
        package onnxruntime.

    Raises:
        ModelError: If the outputs differ.
    """
    run = _runners[format](path) if format in _runners else None
    if run is None:
        return None
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        inputs = example.copied()
        expected = _outputs(model(*inputs.args, **inputs.kwargs))
        found = run(example.copied())
    if [one.shape for one in expected] != [one.shape for one in found]:
        raise ModelError(
            f"What was written returns tensors of the shapes "
            f"{[tuple(one.shape) for one in found]}, and the model "
            f"{[tuple(one.shape) for one in expected]}."
        )
    difference = max(map(_difference, expected, found), default=0.0)
    if not difference <= LARGEST_DIFFERENCE:
        raise ModelError(
            "What was written computes something else than the model: the outputs differ by "
            f"{difference:.2g} of the largest one."
        )
    return difference


def _difference(expected: Tensor, found: Tensor) -> float:
    if expected.numel() == 0:
        return 0.0
    one, other = expected.to(torch.float64), found.to(torch.float64)
    # What is not finite has to be so in both, and has no difference.
    alike = (one == other) | (one.isnan() & other.isnan())
    scale = one[one.isfinite()].abs().max().item() if one.isfinite().any() else 0.0
    apart = torch.where(alike, 0.0, (one - other).abs())
    return float("inf") if apart.isnan().any() else apart.max().item() / max(scale, 1e-6)


def _tensors(output: object) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(output) if isinstance(leaf, Tensor)]


def _outputs(output: object) -> list[Tensor]:
    """Return the tensors of an output; a plain number in it is one in most programs."""
    leaves = [leaf for leaf in tree_leaves(output) if isinstance(leaf, Tensor | int | float)]
    return [torch.as_tensor(leaf) for leaf in leaves]


def _program(path: Path) -> Callable[[Example], list[Tensor]]:
    program = torch.export.load(path).module()
    return lambda example: _outputs(program(*example.args, **example.kwargs))


def _script(path: Path) -> Callable[[Example], list[Tensor]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        script = torch.jit.load(str(path))  # type: ignore[no-untyped-call]
    return lambda example: _outputs(script(*example.args, **example.kwargs))


def _onnx(path: Path) -> Callable[[Example], list[Tensor]] | None:
    if find_spec("onnxruntime") is None:
        return None
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [entry.name for entry in session.get_inputs()]

    def run(example: Example) -> list[Tensor]:
        # torch names the inputs of the graph in the order in which they are given. One that the
        # model does not use is still an input.
        given = dict(zip(names, _tensors((example.args, example.kwargs)), strict=True))
        arrays = {name: tensor.numpy() for name, tensor in given.items()}
        return [
            torch.from_numpy(array) for array in cast("list[object]", session.run(None, arrays))
        ]

    return run


_runners: dict[str, Callable[[Path], Callable[[Example], list[Tensor]] | None]] = {
    "torch.export": _program,
    "torchscript": _script,
    "onnx": _onnx,
}
