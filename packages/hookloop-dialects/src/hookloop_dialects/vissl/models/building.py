"""`build_model`: a second model for a hook, such as a momentum encoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from torch import nn

from hookloop.errors import ModelError, nearest
from hookloop_dialects.vissl.task_config import build_from

Made = TypeVar("Made", bound=Callable[..., Any])

MODEL_REGISTRY: dict[str, Callable[..., Any]] = {}


def register_model(name: str) -> Callable[[Made], Made]:
    """Register a class, or a function, that makes a model from its config and the optimizer's."""

    def register(make: Made) -> Made:
        earlier = MODEL_REGISTRY.get(name, make)
        # A file that is loaded twice registers its classes twice.
        if getattr(earlier, "__qualname__", "") != getattr(make, "__qualname__", ""):
            raise ValueError(f"A model is registered as '{name}' already.")
        MODEL_REGISTRY[name] = make
        return make

    return register


def get_model(model_name: str) -> Callable[..., Any]:
    """Return what was registered under a name."""
    if model_name not in MODEL_REGISTRY:
        raise ModelError(
            f"No model is registered as '{model_name}'.{nearest(model_name, MODEL_REGISTRY)}"
        )
    return MODEL_REGISTRY[model_name]


def build_model(model_config: Mapping[str, Any], optimizer_config: object = None) -> nn.Module:
    """Make a model from its config: a registered one, or a copy of the run's.

    Args:
        model_config: ``task.config["MODEL"]``, or a config with a registered ``BASE_MODEL_NAME``.
        optimizer_config: The optimizer's config, for registered models.
    """
    name = str(model_config.get("BASE_MODEL_NAME", ""))
    if name in MODEL_REGISTRY:
        made: nn.Module = MODEL_REGISTRY[name](model_config, optimizer_config)
        return made
    return build_from(model_config)
