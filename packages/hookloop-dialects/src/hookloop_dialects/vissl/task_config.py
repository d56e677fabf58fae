"""`TaskConfig`: ``task.config``, from which hooks of VISSL also build a copy of the model."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Mapping
from typing import Any

from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from hookloop.errors import ModelError
from hookloop_dialects.vissl.config.attr_dict import AttrDict

_log = logging.getLogger("vissl")


class TaskConfig(AttrDict):
    """The config of a run, complete with VISSL's defaults.

    Its section ``MODEL`` stands for the model of the run: `build_model` copies that.
    """

    def bind(self, model: nn.Module) -> None:
        """Remember the model that ``MODEL`` stands for."""
        section = self.get("MODEL")
        if isinstance(section, Mapping):
            self["MODEL"] = ModelConfig(section, model)


class TrainConfig(AttrDict):
    """The section ``DATA.TRAIN``, whose batch size is that of the run's data unless it is given.

    Args:
        section: The entries.
        batch_size: Returns the samples per batch of one process.
    """

    def __init__(
        self, section: Mapping[str, object], batch_size: Callable[[], int] | None = None
    ) -> None:
        super().__init__(section)
        object.__setattr__(self, "_batch_size", batch_size)  # As below.

    def __missing__(self, name: str) -> object:
        batch_size: Callable[[], int] | None = vars(self)["_batch_size"]
        if name == "BATCHSIZE_PER_REPLICA" and batch_size is not None:
            return batch_size()
        return super().__missing__(name)


class ModelConfig(AttrDict):
    """The section ``MODEL`` of a run's config.

    Args:
        section: The entries.
        model: The model of the run.
    """

    def __init__(self, section: Mapping[str, object], model: nn.Module | None = None) -> None:
        super().__init__(section)
        # Past __setattr__, which would make entries of them.
        object.__setattr__(self, "_model", model)
        object.__setattr__(self, "_before", copy.deepcopy(self.to_dict()))

    def copy_of_model(self) -> nn.Module:
        """Return a copy of the run's model in training mode, with gradients and new statistics."""
        found: nn.Module | None = vars(self)["_model"]
        if found is None:
            raise ModelError(
                "build_model: this config is a copy, so its model is unknown. Pass "
                "task.config['MODEL'] itself, or register a model under its BASE_MODEL_NAME with "
                "vissl.models.register_model."
            )
        if self.to_dict() != vars(self)["_before"]:
            _log.warning(
                "build_model: a hook has changed task.config['MODEL']. The new model is a copy of "
                "the run's model, without that change. Register a model under the config's "
                "BASE_MODEL_NAME with vissl.models.register_model to build it from the config."
            )
        made = copy.deepcopy(found).requires_grad_(True).train()
        for layer in made.modules():  # A new model has seen no batch.
            if isinstance(layer, _NormBase):
                layer.reset_running_stats()
        return made


def build_from(section: Mapping[str, Any]) -> nn.Module:
    """Return a copy of the model that a section of a run's config stands for."""
    if isinstance(section, ModelConfig):
        return section.copy_of_model()
    raise ModelError(
        "build_model: only the model of the run can be built, from task.config['MODEL']. Register "
        "another one under its config's BASE_MODEL_NAME with vissl.models.register_model."
    )
