"""``mmengine.optim.BaseOptimWrapper``: what all wrappers of optimizers have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, cast

from torch import Tensor
from torch.optim import Optimizer


class BaseOptimWrapper(ABC):
    """The base of wrappers; a subclass defines how an update is made.

    Args:
        optimizer: The optimizer.
    """

    base_param_settings: dict[str, object] | None = None

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer

    @abstractmethod
    def update_params(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - a loss, or more
        """Update the parameters with a loss."""

    def backward(self, loss: Tensor, **kwargs: object) -> None:
        """Add the gradients of a loss."""
        loss.backward(**kwargs)  # type: ignore[no-untyped-call]

    def step(self, **kwargs: object) -> None:
        """Make a step."""
        self.optimizer.step(**kwargs)  # type: ignore[call-overload]

    def zero_grad(self, **kwargs: object) -> None:
        """Clear the gradients."""
        self.optimizer.zero_grad(**kwargs)  # type: ignore[arg-type]

    @property
    def param_groups(self) -> list[dict[str, object]]:
        """The parameter groups, with the base group if there is one."""
        groups = self.optimizer.param_groups
        return [*groups, self.base_param_settings] if self.base_param_settings else groups

    @property
    def defaults(self) -> dict[str, object]:
        """The optimizer's defaults."""
        return self.optimizer.defaults

    def get_lr(self) -> dict[str, list[float]]:
        """Return the learning rates of the groups."""
        rates = {"lr": [cast("float", group["lr"]) for group in self.optimizer.param_groups]}
        if self.base_param_settings is not None:
            rates["base_lr"] = [cast("float", self.base_param_settings["lr"])]
        return rates

    def get_momentum(self) -> dict[str, list[float]]:
        """Return the momentum of each group; for Adam and its like, the first beta."""
        momenta = {"momentum": [_momentum_of(group) for group in self.optimizer.param_groups]}
        if self.base_param_settings is not None:
            momenta["base_momentum"] = [_momentum_of(self.base_param_settings)]
        return momenta

    def state_dict(self) -> dict[str, object]:
        """Return the state of the optimizer."""
        # MMEngine's layout, so that its files and ours can be exchanged.
        state: dict[str, object] = self.optimizer.state_dict()
        if self.base_param_settings is not None:
            state["base_param_settings"] = self.base_param_settings
        return state

    def load_state_dict(self, state_dict: Mapping[str, object]) -> None:
        """Restore what `state_dict` returned."""
        state = dict(state_dict)
        base = state.pop("base_param_settings", None)
        if base is not None:
            self.base_param_settings = dict(cast("Mapping[str, object]", base))
        self.optimizer.load_state_dict(state)


def _momentum_of(group: Mapping[str, object]) -> float:
    if "momentum" in group:
        return cast("float", group["momentum"])
    # An optimizer without either, such as Adagrad, has no momentum.
    return cast("tuple[float, ...]", group.get("betas", (0,)))[0]
