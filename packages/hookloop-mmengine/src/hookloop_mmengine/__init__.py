"""The dialect of MMEngine: its hooks, runner and modules, on top of hookloop.

Modules have MMEngine's names, so that files written for it import them unchanged inside
``dialects.alias("mmengine")``. Without the alias they are imported by their full names, for example
``hookloop_mmengine.hooks``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from hookloop_mmengine.missing import GRAFT as INSTEAD
from hookloop_mmengine.missing import reject
from hookloop_mmengine.version import __version__, version_info

if TYPE_CHECKING:
    from hookloop_mmengine.config import Config, ConfigDict, DictAction
    from hookloop_mmengine.fileio import dump, load
    from hookloop_mmengine.registry import Registry, build_from_cfg

# All their names are MMEngine's names as well. Searched in this order, from light to heavy, so that
# a file that needs the registry alone does not import torch.
_HOMES = ("utils", "registry", "config", "fileio", "logging")

__all__ = [
    "INSTEAD",
    "Config",
    "ConfigDict",
    "DictAction",
    "Registry",
    "__version__",
    "build_from_cfg",
    "dump",
    "load",
    "version_info",
]


def __getattr__(name: str) -> object:
    if not name.startswith("_"):
        for home in _HOMES:
            module = import_module(f"{__name__}.{home}")
            if name in module.__all__:
                return getattr(module, name)
    return reject(__name__, name)
