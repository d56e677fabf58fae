"""``pointrix.utils.config``: settings as dataclasses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from hookloop.errors import HookError, nearest

Settings = TypeVar("Settings")


def parse_structured(
    fields_type: type[Settings], cfg: Mapping[str, Any] | object | None = None
) -> Settings:
    """Make a dataclass from a mapping, or from another object with these attributes.

    Raises:
        HookError: If the mapping has an entry that the dataclass lacks.
    """
    if not is_dataclass(fields_type):
        raise HookError(f"parse_structured: {fields_type!r} is not a dataclass.")
    names = [field.name for field in fields(fields_type)]
    values = dict(cfg) if isinstance(cfg, Mapping) else dict(vars(cfg)) if cfg is not None else {}
    for name in values:
        if name not in names:
            known = ", ".join(names)
            raise HookError(
                f"'{name}' is not an entry of {fields_type.__qualname__}.{nearest(name, names)} "
                f"Available: {known}."
            )
    return fields_type(**values)
