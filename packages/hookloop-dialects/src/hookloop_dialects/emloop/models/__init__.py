"""``emloop.models``: the class of models, and the model in training as hooks see it."""

from __future__ import annotations

from hookloop_dialects.emloop.models.abstract_model import AbstractModel
from hookloop_dialects.emloop.models.saving_model import SavingModel

__all__ = ["AbstractModel", "SavingModel"]
