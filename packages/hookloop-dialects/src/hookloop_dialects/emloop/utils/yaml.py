"""``emloop.utils.yaml``: read and write YAML."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from hookloop.dialects import dump_yaml, number_floats, write_text


class _Loader(yaml.SafeLoader):
    """Reads plain values, and ``1e-3`` as a number."""


number_floats(_Loader)


def parse_yaml(text: str) -> Any:  # noqa: ANN401 - what the text holds
    """Return what a YAML text holds: dicts, lists, numbers and texts."""
    return yaml.load(text, Loader=_Loader)


def load_yaml(yaml_file: str) -> Any:  # noqa: ANN401 - what the file holds
    """Return what a YAML file holds."""
    return parse_yaml(Path(yaml_file).read_text(encoding="utf-8"))


def yaml_to_str(data: Mapping[str, Any]) -> str:
    """Return a mapping as YAML."""
    return dump_yaml(data)


def yaml_to_file(data: Mapping[str, Any], output_dir: str, name: str) -> str:
    """Write a mapping as YAML, and return the path; a reader never sees half of the file."""
    path = Path(output_dir) / name
    write_text(path, yaml_to_str(data))
    return str(path)


def reload(data: Mapping[str, Any]) -> Any:  # noqa: ANN401 - what was given
    """Return a copy that has gone through YAML."""
    return parse_yaml(yaml_to_str(data))
