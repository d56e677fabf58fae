"""The dialect of emloop: `AbstractHook` with its five events, and emloop's own hooks."""

from __future__ import annotations

from hookloop.dialects.emloop import constants, datasets, hooks, models, types, utils
from hookloop.dialects.emloop.api import create_hooks
from hookloop.dialects.emloop.datasets import AbstractDataset, BaseDataset
from hookloop.dialects.emloop.hooks import AbstractHook, TrainingTerminated
from hookloop.dialects.emloop.main_loop import MainLoop
from hookloop.dialects.emloop.models import AbstractModel
from hookloop.dialects.emloop.types import Batch, EpochData, Stream, TimeProfile
from hookloop.dialects.emloop.utils.yaml import load_yaml

__all__ = [
    "AbstractDataset",
    "AbstractHook",
    "AbstractModel",
    "BaseDataset",
    "Batch",
    "EpochData",
    "MainLoop",
    "Stream",
    "TimeProfile",
    "TrainingTerminated",
    "constants",
    "create_hooks",
    "datasets",
    "hooks",
    "load_yaml",
    "models",
    "types",
    "utils",
]
