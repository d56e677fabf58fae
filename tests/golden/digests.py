"""States as flat tables from paths to short texts, so that a comparison can name what differs."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch

Table = dict[str, str]

_CLOCK = re.compile(
    r"(^|[/_])(time|seconds|data_time|memory|throughput|mfu|flops|power|temperature)($|[/_])"
    r"|per_second|^(device|system)/|^(started|begun|ended|written|run_id|eta)$"
)
"""Names of what measures the machine, or the clock. Not the engine's own: it is compared here."""

_PATH = re.compile(r"(?<![\w.<>])(?:/[\w.+-]+)*/([\w.+-]+)")
_NAME = r"<path>/\1"


def short(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


def flatten(value: object, path: str = "", *, leave_out: Iterable[str] = ()) -> Table:
    """Return every entry of nested containers by its path, without clocks."""
    table: Table = {}
    _add(table, value, path, frozenset(leave_out))
    return table


def _add(table: Table, value: object, path: str, leave_out: frozenset[str]) -> None:
    if isinstance(value, Mapping):
        if not value:
            table[path] = "{}"
        for key, one in value.items():
            if not _is_left_out(key, leave_out):
                _add(table, one, f"{path}.{key}", leave_out)
    elif isinstance(value, list | tuple):
        if len(value) > 64 and all(isinstance(one, int | float) for one in value):
            table[path] = f"{type(value).__name__} of {len(value)} {short(repr(value).encode())}"
            return
        table[f"{path}.<kind>"] = f"{type(value).__name__} of {len(value)}"
        for index, one in enumerate(value):
            _add(table, one, f"{path}[{index}]", leave_out)
    else:
        table[path] = describe(value)


def without_times(text: str) -> str:
    """Return a text without the moment that a name may have in it."""
    return re.sub(r"\d{8}_\d{6}", "<moment>", text)


def without_clocks(record: Mapping[str, object]) -> dict[str, object]:
    """Return the entries that do not measure the machine, in their order."""
    return {key: value for key, value in record.items() if not _is_left_out(key, frozenset())}


def _is_left_out(key: object, leave_out: frozenset[str]) -> bool:
    return isinstance(key, str) and (key in leave_out or _CLOCK.search(key) is not None)


def describe(value: object) -> str:
    """Return a short text that is the same for the same bits, and for nothing else."""
    if isinstance(value, torch.Tensor):
        if hasattr(value, "full_tensor"):
            value = value.full_tensor()
        value = value.detach().cpu()
        bits = value.contiguous().view(-1).view(torch.uint8).numpy().tobytes()
        kind = str(value.dtype).removeprefix("torch.")
        text = f" = {value.item()!r}" if value.numel() == 1 else ""
        return f"{kind}{list(value.shape)} {short(bits)}{text}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)} {short(value.tobytes())}"
    if isinstance(value, str):
        return repr(without_times(_PATH.sub(_NAME, value)))
    if value is None or isinstance(value, bool | int | float | bytes | torch.dtype):
        return repr(value)
    return f"{type(value).__name__}"


def generators(others: Iterable[torch.Generator] = ()) -> Table:
    """Return the digests of Python's, NumPy's, torch's and other generators."""
    kind, keys, position, has_gauss, gauss = np.random.get_state()  # type: ignore[misc]
    numpy: tuple[Any, ...] = (kind, position, has_gauss, gauss)
    return {
        "python": short(repr(random.getstate()).encode()),
        "numpy": short(repr(numpy).encode() + keys.tobytes()),
        "torch": short(torch.get_rng_state().numpy().tobytes()),
        **{
            f"loader {number}": short(one.get_state().numpy().tobytes())
            for number, one in enumerate(others)
        },
    }


_MESSAGE = (
    (re.compile(r"\x1b\[[0-9;?]*[A-Za-z]"), ""),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(\+\d\d:\d\d)?"), "<time>"),
    (re.compile(r"\b\d+:\d\d(:\d\d)?\b"), "<time>"),
    (re.compile(r"\b\d[\d.e+-]*( [um]?s)?/iter\b"), "<time> per iteration"),
    (
        re.compile(r"\b\d+(\.\d+)?(e[-+]?\d+)? ?(s|ms|us|min|h|kB|MB|GB|seconds|it/s|/s)\b"),
        "<time>",
    ),
    (re.compile(r"(_time|_time:|throughput) \d[\d.e+-]*"), r"\1 <time>"),
    (re.compile(r"\(data [\d.e+-]+\)"), "(data <time>)"),
    (re.compile(r"\b(process|pid|port) \d+"), r"\1 <number>"),
    (re.compile(r"\bon [\w.-]+, hookloop [\w.]+"), "on <host>, <version>"),
    (_PATH, _NAME),
    (re.compile(r"(\.py\"?):? ?(, line )?\d+"), r"\1 <line>"),
)


def messages(text: str) -> list[str]:
    """Return the lines of an output without times, paths and what else differs each time."""
    lines = []
    for one in text.splitlines():
        line = without_times(one)
        for pattern, other in _MESSAGE:
            line = pattern.sub(other, line)
        lines.append(line.rstrip())
    return lines
