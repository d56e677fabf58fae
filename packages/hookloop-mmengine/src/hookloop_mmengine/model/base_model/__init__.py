"""``mmengine.model.base_model``: the base of models, and what prepares their batches."""

from __future__ import annotations

from typing import NoReturn

from hookloop_mmengine.missing import reject
from hookloop_mmengine.model.base_model.base_model import BaseModel
from hookloop_mmengine.model.base_model.data_preprocessor import BaseDataPreprocessor

__all__ = ["BaseDataPreprocessor", "BaseModel"]


def __getattr__(name: str) -> NoReturn:
    reject(__name__, name)
