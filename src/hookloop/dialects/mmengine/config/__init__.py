"""``mmengine.config``: config files in Python, YAML or JSON, and dicts with attributes."""

from __future__ import annotations

from hookloop.dialects.mmengine.config.action import DictAction, read_base
from hookloop.dialects.mmengine.config.config import Config
from hookloop.dialects.mmengine.config.config_dict import ConfigDict

__all__ = ["Config", "ConfigDict", "DictAction", "read_base"]
