"""``emloop.utils``: what hook files import from it."""

from __future__ import annotations

from hookloop_dialects.emloop.utils.config import load_config, parse_arg
from hookloop_dialects.emloop.utils.confusion_matrix import confusion_matrix
from hookloop_dialects.emloop.utils.misc import DisabledLogger, DisabledPrint, ReleasedSemaphore
from hookloop_dialects.emloop.utils.names import get_random_name
from hookloop_dialects.emloop.utils.profile import Timer
from hookloop_dialects.emloop.utils.reflection import (
    create_object,
    find_class_module,
    get_attribute,
    get_class_module,
    list_submodules,
    parse_fully_qualified_name,
)
from hookloop_dialects.emloop.utils.yaml import yaml_to_file, yaml_to_str

__all__ = [
    "DisabledLogger",
    "DisabledPrint",
    "ReleasedSemaphore",
    "Timer",
    "confusion_matrix",
    "create_object",
    "find_class_module",
    "get_attribute",
    "get_class_module",
    "get_random_name",
    "list_submodules",
    "load_config",
    "parse_arg",
    "parse_fully_qualified_name",
    "yaml_to_file",
    "yaml_to_str",
]
