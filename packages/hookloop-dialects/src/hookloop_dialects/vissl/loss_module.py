"""`task.loss`: the loss module, also for a loss that is a function, or computed by a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

from hookloop.errors import CheckpointError, HookError


def loss_module(loss: Callable[..., Tensor | None] | None) -> nn.Module:
    """Return the loss of a Trainer as a module: itself if it is one."""
    if isinstance(loss, nn.Module):
        return loss
    return ComputedLoss() if loss is None else FunctionLoss(loss)


class FunctionLoss(nn.Module):
    """A loss function in the form of a module; it has no state."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever it takes
        """Call the function."""
        return self.function(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - parameters, buffers, modules
        try:
            return super().__getattr__(name)
        except AttributeError as error:
            raise AttributeError(
                f"task.loss has no '{name}': the loss of this run is not a module with one. Give "
                f"Trainer(loss=...) a torch.nn.Module with the attribute '{name}'."
            ) from error


class ComputedLoss(FunctionLoss):
    """Stands for a loss that a step, or the model, computes itself."""

    def __init__(self) -> None:
        super().__init__(_reject)


def _reject(*args: object, **kwargs: object) -> None:
    raise HookError(
        "A hook called task.loss, but a step or the model computes the loss in this run. Give it "
        "to the Trainer as loss= instead."
    )


def restore_loss(loss: nn.Module, state: Mapping[str, Any]) -> None:
    """Load the state of a loss; a loss of VISSL may keep it until a hook has built its parts."""
    plain = type(loss).load_state_dict is nn.Module.load_state_dict
    unknown = sorted(set(state) - set(loss.state_dict())) if plain else []
    if unknown:
        raise CheckpointError(
            f"The loss {type(loss).__name__} lacks what the checkpoint has of it: "
            f"{', '.join(unknown[:3])}{', ...' if len(unknown) > 3 else ''}. A hook built these "
            "in the training. Give the loss a load_state_dict that keeps the state until the hook "
            "has built them again, as VISSL's losses do in their attribute 'checkpoint'."
        )
    loss.load_state_dict(state)
