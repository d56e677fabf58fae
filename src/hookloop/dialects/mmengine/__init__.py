"""The dialect of MMEngine: its hooks, runner and modules, on top of hookloop.

Modules have MMEngine's names, so that files written for it import them unchanged inside
``dialects.alias("mmengine")``. Without the alias they are imported by their full names, for example
``hookloop.dialects.mmengine.hooks``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hookloop.dialects.mmengine.config import Config, ConfigDict, DictAction
    from hookloop.dialects.mmengine.fileio import dump, load
    from hookloop.dialects.mmengine.registry import Registry, build_from_cfg

__version__ = "0.10.7"

# Imported on first use, so that a file that needs the registry alone does not import torch.
_MODULES = {
    "Config": "config",
    "ConfigDict": "config",
    "DictAction": "config",
    "dump": "fileio",
    "load": "fileio",
    "Registry": "registry",
    "build_from_cfg": "registry",
    "MMLogger": "logging",
    "MessageHub": "logging",
    "print_log": "logging",
    "FileClient": "fileio",
    "ProgressBar": "utils",
    "is_list_of": "utils",
    "is_seq_of": "utils",
    "is_tuple_of": "utils",
    "list_from_file": "fileio",
    "mkdir_or_exist": "utils",
}

__all__ = ["Config", "ConfigDict", "DictAction", "Registry", "build_from_cfg", "dump", "load"]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
