"""Batches and outputs as a file that anybody can load: tensors in plain containers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path

import torch
from torch import Tensor

from hookloop.runs.files import drafted
from hookloop.secret import redact


def portable(value: object) -> object:
    """Copy tensors to the CPU, keep plain values and containers, and turn the rest into text.

    >>> portable({"x": (1, None), "path": Path("a")})
    {'x': (1, None), 'path': "PosixPath('a')"}
    """
    if isinstance(value, Tensor):
        return value.detach().to("cpu", copy=True)
    if value is None or isinstance(value, bool | int | float | str):
        return str.__str__(redact(value)) if isinstance(value, str) else value
    if isinstance(value, Mapping):
        return {str(key): portable(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        parts = [portable(part) for part in value]
        return tuple(parts) if isinstance(value, tuple) else parts
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: portable(getattr(value, field.name)) for field in fields(value)}
    return redact(repr(value))


def named_tensors(value: object, name: str) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors in a nested value, each with the way to it: ``output['logits'][0]``."""
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
    """Write a value so that ``torch.load(path, weights_only=True)`` reads it; whole or not."""
    with drafted(path) as draft:
        torch.save(portable(value), draft)
