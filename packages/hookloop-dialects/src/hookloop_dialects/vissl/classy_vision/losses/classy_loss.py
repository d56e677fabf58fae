"""`ClassyLoss`: the base class of losses, and losses by their names in configs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self, TypeVar

from torch import nn

from hookloop.errors import ModelError, nearest

Kind = TypeVar("Kind", bound=type)

LOSS_REGISTRY: dict[str, type] = {}


class ClassyLoss(nn.Module):
    """A loss; a subclass has ``forward(output, target)``."""

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Make the loss from its settings."""
        return cls(**config)

    def get_classy_state(self) -> dict[str, Any]:
        """Return the state that a checkpoint keeps."""
        return self.state_dict()

    def set_classy_state(self, state: Mapping[str, Any]) -> None:
        """Restore the state."""
        self.load_state_dict(state)

    def has_learned_parameters(self) -> bool:
        """Return whether the loss has parameters that are trained."""
        return any(value.requires_grad for value in self.parameters())


def register_loss(name: str, bypass_checks: bool = False) -> Callable[[Kind], Kind]:
    """Register a loss class for configs.

    Args:
        name: The name in configs.
        bypass_checks: Whether to replace an earlier class of that name.
    """

    def register(kind: Kind) -> Kind:
        earlier = LOSS_REGISTRY.get(name, kind)
        # A file that is loaded twice registers its classes twice.
        if not bypass_checks and earlier.__qualname__ != kind.__qualname__:
            raise ValueError(f"A loss is registered as '{name}' already.")
        LOSS_REGISTRY[name] = kind
        return kind

    return register


def build_loss(config: Mapping[str, Any]) -> nn.Module:
    """Make a loss from ``{"name": ...}``: a registered one, or one of ``torch.nn``."""
    settings = dict(config)
    name = str(settings.pop("name", ""))
    if name in LOSS_REGISTRY:
        made: nn.Module = LOSS_REGISTRY[name].from_config(settings)  # type: ignore[attr-defined]
        return made
    kind = getattr(nn, name, None)
    if not isinstance(kind, type):
        raise ModelError(f"No loss is registered as '{name}'.{nearest(name, LOSS_REGISTRY)}")
    found: nn.Module = kind(**settings)
    return found
