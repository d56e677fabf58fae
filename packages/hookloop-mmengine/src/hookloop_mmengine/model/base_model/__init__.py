"""``mmengine.model.base_model``: the base of models, and what prepares their batches."""

from __future__ import annotations

from hookloop_mmengine.model.base_model.base_model import BaseModel
from hookloop_mmengine.model.base_model.data_preprocessor import BaseDataPreprocessor

__all__ = ["BaseDataPreprocessor", "BaseModel"]
