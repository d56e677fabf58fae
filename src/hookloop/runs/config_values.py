"""Read the config of a run as flat values, without building or importing anything of it.

A thousand configs are to be listed in a second, which the YAML parser alone cannot do. Runs that
are listed together have most of their config in common, so what belongs to a top-level key is
parsed once for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from hookloop.runs.layout import RunDir
from hookloop.runs.moved_settings import moved_key
from hookloop.runs.reading import read_bytes

LARGEST = 1_000_000
"""Bytes of a config that are read."""

MOST = 10_000
"""How many values of a config are read."""

# What belongs to a top-level key: its line, and those that are indented, items of a list or
# comments. Comments before the first key belong to that.
_BLOCK = re.compile(r"(?:#[^\n]*\n|\n)*[A-Za-z_][^\n]*\n(?:[ #-][^\n]*\n|\n)*")
_COUNT = re.compile(r"([A-Za-z_]\w*): (-?[1-9][0-9]{0,15}|0)\n")


def read_config(run: RunDir) -> dict[str, object]:
    """Return the values of a run's config by their keys, such as ``optimizer.lr``; {} without one.

    For a run that a script made, they are what it was trained with, as its objects were found, and
    above that the config that the script gave.
    A list of plain values is one value; others have their number in the key: ``hooks.0.type``.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it is not a config.
    """
    config = _read(run.config_file)
    return config if is_whole(config) else _read(run.described_file) | config


def is_whole(config: Mapping[str, object]) -> bool:
    """Return whether a config describes all of a training, as one that was read from a file does.

    The config that a script gives to a `Trainer` may be any part of it.
    """
    return "import_path" in config


def _read(path: Path) -> dict[str, object]:
    try:
        data = read_bytes(path, LARGEST + 1)
    except FileNotFoundError:
        return {}
    if len(data) > LARGEST:
        raise ValueError(f"'{path.name}' is larger than {LARGEST} bytes")
    values = parse_config(data.decode("utf-8", "replace"))
    return {moved_key(key): value for key, value in values.items()}


def parse_config(text: str) -> dict[str, object]:
    """Return the values of a config by their keys.

    >>> parse_config("optimizer: {type: SGD, lr: 1e-3}")
    {'optimizer.type': 'SGD', 'optimizer.lr': 0.001}
    """
    text = text if text.endswith("\n") else f"{text}\n"
    blocks = _BLOCK.findall(text)
    if "".join(blocks) != text:  # Documents, flow style: nothing that a run writes.
        return dict(_parse(text))
    flat: dict[str, object] = {}
    try:
        for block in blocks:
            flat.update(_parse(block))
    except ValueError:  # A text of several lines may look like a new key.
        return dict(_parse(text))
    return flat


@lru_cache(maxsize=8192)
def _parse(text: str) -> tuple[tuple[str, object], ...]:
    """Return the keys and values of a part of a config."""
    if count := _COUNT.fullmatch(text):  # Such as the seed, which is another one in each run.
        return ((count[1], int(count[2])),)
    from hookloop.runs import plain_yaml

    tree = plain_yaml.load(text)
    if not isinstance(tree, Mapping):
        raise ValueError("it is not a config")
    return tuple(flatten(tree).items())


def flatten(tree: Mapping[object, object]) -> dict[str, object]:
    """Return the values of a tree by their keys.

    >>> flatten({"a": {"b": [1, 2]}, "hooks": [{"type": "X"}], "c": {}})
    {'a.b': [1, 2], 'hooks.0.type': 'X', 'c': {}}
    """
    flat: dict[str, object] = {}
    for key, value in _leaves(tree, ""):
        if len(flat) == MOST:
            raise ValueError(f"it has more than {MOST} values")
        flat[key] = value
    return flat


def _leaves(value: object, path: str) -> Iterator[tuple[str, object]]:
    items: list[tuple[object, object]] = []
    if isinstance(value, Mapping):
        items = list(value.items())
    elif isinstance(value, list) and any(isinstance(one, Mapping | list) for one in value):
        items = list(enumerate(value))
    if not items:
        yield path, value
    for key, item in items:
        yield from _leaves(item, f"{path}.{key}" if path else str(key))
