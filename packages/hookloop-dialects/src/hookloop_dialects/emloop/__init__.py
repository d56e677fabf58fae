"""The dialect of emloop: `AbstractHook` with its five events, and emloop's own hooks."""

from __future__ import annotations

from hookloop_dialects.emloop import constants, datasets, hooks, models, types, utils
from hookloop_dialects.emloop.api import create_hooks
from hookloop_dialects.emloop.datasets import AbstractDataset, BaseDataset
from hookloop_dialects.emloop.hooks import AbstractHook, TrainingTerminated
from hookloop_dialects.emloop.main_loop import MainLoop
from hookloop_dialects.emloop.models import AbstractModel
from hookloop_dialects.emloop.types import Batch, EpochData, Stream, TimeProfile
from hookloop_dialects.emloop.utils.yaml import load_yaml

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
