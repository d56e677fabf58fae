"""``mmengine.config``: config files in Python, YAML or JSON, and dicts with attributes."""

from __future__ import annotations

from hookloop_mmengine.config.action import DictAction, read_base
from hookloop_mmengine.config.config import Config
from hookloop_mmengine.config.config_dict import ConfigDict

__all__ = ["Config", "ConfigDict", "DictAction", "read_base"]
