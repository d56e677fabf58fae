"""Write batches and outputs to a file that anybody can load: tensors in plain containers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path

import torch
from torch import Tensor

from hookloop.runs.files import drafted
from hookloop.secret import redact


def to_portable(value: object) -> object:
    """Copy tensors to the CPU, keep plain values and containers, and turn the rest into text.

    >>> to_portable({"x": (1, None), "path": Path("a")})
    {'x': (1, None), 'path': "PosixPath('a')"}
    """
    if isinstance(value, Tensor):
        return value.detach().to("cpu", copy=True)
    if value is None or isinstance(value, bool | int | float | str):
        # A plain str, because torch.load rejects a subclass.
        return str.__str__(redact(value)) if isinstance(value, str) else value
    if isinstance(value, Mapping):
        return {str(key): to_portable(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        parts = [to_portable(part) for part in value]
        return tuple(parts) if isinstance(value, tuple) else parts
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_portable(getattr(value, field.name)) for field in fields(value)}
    return redact(repr(value))


def named_tensors(value: object, name: str) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors in a nested value, each with its path: ``output['logits'][0]``."""
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from named_tensors(part, f"{name}[{key!r}]")
    elif isinstance(value, tuple | list):
        for index, part in enumerate(value):
            yield from named_tensors(part, f"{name}[{index}]")
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from named_tensors(getattr(value, field.name), f"{name}.{field.name}")


def write_portable(path: Path, value: object) -> None:
    """Write a file that ``torch.load(path, weights_only=True)`` reads, complete or not at all."""
    with drafted(path) as draft:
        torch.save(to_portable(value), draft)
