"""Write a model for other programs: its weights, or a program that computes its output."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Literal, cast, get_args

import numpy as np
import torch
from torch.utils._pytree import tree_leaves, tree_map, tree_map_only

from hookloop.checkpoint.export.publish import METADATA
from hookloop.errors import HookloopError, ModelError, nearest
from hookloop.runs.files import drafted
from hookloop.runs.records import to_json

Format = Literal["safetensors", "torchscript", "export", "torch.export", "onnx"]
FORMATS: tuple[str, ...] = get_args(Format)
SUFFIXES = {
    "safetensors": ".safetensors",
    "torchscript": ".pt",
    "torch.export": ".pt2",
    "onnx": ".onnx",
}

METADATA_FILE = f"{METADATA}.json"
"""The file with the metadata inside a program of torch."""

LARGEST_ONNX = 2_000_000_000
"""Bytes of weights that one file of ONNX can hold; its format counts up to two gigabytes."""


def format_named(name: str) -> str:
    """Return the format that a name stands for; ``export`` is short for ``torch.export``.

    >>> format_named("export")
    'torch.export'
    """
    if name not in FORMATS:
        raise HookloopError(
            f"format={name!r}: write {', '.join(SUFFIXES)}.{nearest(str(name), FORMATS)}"
        )
    return "torch.export" if name == "export" else name


@dataclass(frozen=True)
class Example:
    """The inputs that a model is traced with."""

    args: tuple[object, ...]
    kwargs: dict[str, object]

    @classmethod
    def of(cls, inputs: object) -> Example:
        """Read inputs as the engine passes them: a mapping by name, a sequence by position.

        Arrays become tensors, which is what a program takes.
        """
        inputs = tree_map_only(np.ndarray, torch.as_tensor, inputs)
        if isinstance(inputs, Mapping):
            return cls((), {str(name): value for name, value in inputs.items()})
        return cls(tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,), {})

    def shapes(self) -> dict[str, object] | tuple[object, ...]:
        """Return dynamic shapes: any number of samples, if the model allows it."""

        def batch(value: object) -> object:
            free = isinstance(value, torch.Tensor) and value.ndim > 0
            return {0: torch.export.Dim.AUTO} if free else None

        return tree_map(batch, self.kwargs or self.args)  # type: ignore[no-any-return]

    def check(self, format: str) -> None:
        """Reject inputs that no program can take."""
        for leaf in tree_leaves((self.args, self.kwargs)):
            if not isinstance(leaf, torch.Tensor | int | float | str | None):
                raise ModelError(
                    f"the model is called with a {type(leaf).__name__}, and a program takes "
                    f"tensors, and tuples, lists and mappings of tensors: {format} cannot hold "
                    "this model as it is. Write safetensors, which has the weights alone."
                )

    def copied(self) -> Example:
        """Return the same inputs in memory of their own: a model may change its inputs."""
        args, kwargs = tree_map_only(torch.Tensor, torch.clone, (self.args, self.kwargs))
        return Example(args, kwargs)


def at_least_two(inputs: object, samples: int) -> object:
    """Repeat a single sample: torch.export makes a size of one a fixed size of the program."""
    if samples != 1:
        return inputs
    return tree_map_only(torch.Tensor, lambda tensor: tensor.repeat_interleave(2, 0), inputs)


def write_model(
    model: torch.nn.Module,
    path: Path,
    format: str,
    example: Example | None = None,
    metadata: Mapping[str, object] = MappingProxyType({}),
) -> bool | None:
    """Write a model, which has to be on the CPU and in evaluation mode.

    Args:
        model: The model.
        path: The file; it is replaced as a whole, or not at all.
        format: What `format_named` returns.
        example: The inputs to trace with; safetensors needs none.
        metadata: Plain values that describe it, written into the file as JSON.

    Returns:
        Whether the program takes any number of samples; None if the format does not tell.

    Raises:
        ModelError: If the model cannot be traced.
    """
    about = to_json(metadata)
    if format == "safetensors":
        _write_weights(model, path, about)
        return None
    if example is None:
        raise ModelError(f"An example of the inputs is needed to write {format}.")
    if type(model).forward is torch.nn.Module.forward:
        raise ModelError(
            f"{type(model).__name__} has no method 'forward', so there is nothing to trace: write "
            "safetensors."
        )
    example.check(format)
    # Tracing runs the model, which may draw random numbers.
    with torch.random.fork_rng(devices=[]), torch.no_grad(), drafted(path) as draft:
        try:
            writers = {
                "torch.export": _write_program,
                "torchscript": _write_script,
                "onnx": _write_onnx,
            }
            return writers[format](model, example.copied(), draft, about)
        except (TypeError, RuntimeError) as error:
            # torch reports a full disk as a RuntimeError. Writing a megabyte raises the system's
            # own OSError in that case, which is clearer.
            with draft.open("ab") as file:
                file.write(bytes(1 << 20))
            raise ModelError(
                f"the model cannot be traced as {format} with these inputs: {_in_short(error)}"
            ) from error


def read_metadata(path: Path, format: str) -> dict[str, object]:
    """Return the metadata of a written file; nothing of its model is executed."""
    if format == "safetensors":
        from safetensors import safe_open

        with safe_open(path, "pt") as file:
            text = (file.metadata() or {}).get(METADATA, "{}")
    elif format == "onnx":
        import onnx

        found = onnx.load(path, load_external_data=False).metadata_props
        text = next((entry.value for entry in found if entry.key == METADATA), "{}")
    else:
        inside: dict[str, str] = {METADATA_FILE: ""}
        if format == "torchscript":
            torch.jit.load(str(path), _extra_files=inside)  # type: ignore[no-untyped-call]
        else:
            torch.export.load(path, extra_files=inside)
        held = cast("str | bytes", inside[METADATA_FILE])
        text = held.decode() if isinstance(held, bytes) else held
    return cast("dict[str, object]", json.loads(text))


def _write_weights(model: torch.nn.Module, path: Path, about: str) -> None:
    from safetensors.torch import save_model

    with drafted(path) as draft:
        draft.touch()  # Raises OSError if it cannot be written; safetensors does not.
        mode = draft.stat().st_mode
        save_model(model, str(draft), metadata={"format": "pt", METADATA: about})
        draft.chmod(mode)  # safetensors ignores the umask: only the owner could read it.


def _write_program(model: torch.nn.Module, example: Example, path: Path, about: str) -> bool:
    program = _traced(model, example)
    held = BytesIO()  # On a full disk, torch's own writer of files ends the whole process.
    torch.export.save(program, held, extra_files={METADATA_FILE: about})
    path.write_bytes(held.getbuffer())
    return _takes_any_size(program)


def _write_script(model: torch.nn.Module, example: Example, path: Path, about: str) -> None:
    with warnings.catch_warnings():
        # torch deprecates TorchScript; who asks for the format knows that.
        warnings.simplefilter("ignore", DeprecationWarning)
        traced = torch.jit.trace(  # type: ignore[no-untyped-call]
            model,
            example.args or None,
            example_kwarg_inputs=example.kwargs or None,
            strict=False,  # A model may return a mapping.
        )
        held = BytesIO()  # As for `_write_program`.
        torch.jit.save(traced, held, _extra_files={METADATA_FILE: about})
    path.write_bytes(held.getbuffer())


def _write_onnx(model: torch.nn.Module, example: Example, path: Path, about: str) -> bool:
    size = sum(tensor.nbytes for tensor in model.state_dict().values() if hasattr(tensor, "nbytes"))
    if size > LARGEST_ONNX:
        raise ModelError(
            f"The weights take {size / 1e9:.1f} GB, and a file of ONNX holds at most 2 GB: write "
            "torch.export or safetensors instead."
        )
    try:
        import onnxscript  # noqa: F401 - torch needs it, and would raise a long error
    except ModuleNotFoundError as error:
        raise ModelError(
            "The format onnx needs the package 'onnxscript', which is not installed: "
            "pip install 'hookloop[onnx]'"
        ) from error
    with _quiet():
        program = _traced(model, example)
        made = torch.onnx.export(program, dynamo=True, verbose=False)
        if made is None:
            raise ModelError("torch.onnx.export returned nothing.")
        made.model.metadata_props[METADATA] = about
        # Whole in one file: the draft is renamed, and a second file would not be found any more.
        made.save(str(path), external_data=False)
    return _takes_any_size(program)


def _traced(model: torch.nn.Module, example: Example) -> torch.export.ExportedProgram:
    with warnings.catch_warnings():
        # A recurrent layer of torch assigns its own weights again; the values stay the same.
        warnings.filterwarnings("ignore", r"The tensor attributes? .* assigned during export")
        return torch.export.export(
            model, example.args, example.kwargs, dynamic_shapes=example.shapes()
        )


def _takes_any_size(program: torch.export.ExportedProgram) -> bool:
    """Return whether the first dimension of an input is free."""
    named = set(program.graph_signature.user_inputs)
    values = [node.meta.get("val") for node in program.graph.nodes if node.name in named]
    tensors = [value for value in values if isinstance(value, torch.Tensor) and value.ndim > 0]
    sizes: list[object] = [value.shape[0] for value in tensors]
    # A symbol that tracing has bound to a number is not free any more.
    return any(isinstance(n, torch.SymInt) and n.node.maybe_as_int() is None for n in sizes)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep back what torch warns itself of, and its notes about packages that are not needed."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        log.setLevel(level)


def _in_short(error: Exception) -> str:
    """Return the first lines of a message: those of torch go on for pages."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return "\n".join(lines[:6])
