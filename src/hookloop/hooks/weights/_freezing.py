"""What hooks that freeze have in common: parameters by pattern, and norms that stand still."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Self

from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from hookloop.engine.hook import Hook
from hookloop.errors import HookError, nearest

if TYPE_CHECKING:
    from hookloop.engine.run import Run


class FrozenNorms:
    """Holds the batch and instance norms of frozen modules in evaluation mode.

    A layer counts as frozen if all of its parameters are; one without parameters, if those of the
    module that contains it are.

    Args:
        is_on: Whether to hold any.
    """

    def __init__(self, *, is_on: bool) -> None:
        self.is_on = is_on
        self.layers: list[nn.Module] = []

    @classmethod
    def of(cls, hook: Hook, norms: str) -> Self:
        """Make it for the argument ``norms`` of a hook, which holds them in each iteration."""
        if norms not in ("train", "eval"):
            raise HookError(f"{type(hook).__name__}: norms={norms!r}: write 'train' or 'eval'.")
        held = cls(is_on=norms == "eval")
        if held.is_on:
            # In each, since `model.train()` is called after every validation. On the instance, so
            # that a hook which holds nothing costs nothing.
            setattr(hook, "before_train_iter", held.hold)  # noqa: B010
        return held

    def find(self, model: nn.Module) -> None:
        """Look for the layers that are frozen now, and let go those that no longer are."""
        if not self.is_on:
            return
        before = self.layers
        self.layers = [
            module
            for name, module in model.named_modules()
            if isinstance(module, _NormBase) and _is_frozen(model, name, module)
        ]
        for layer in before:
            if layer not in self.layers:
                layer.train(model.training)

    def hold(self, run: Run) -> None:
        """Put the layers into evaluation mode."""
        for layer in self.layers:
            layer.training = False

    def release(self) -> None:
        """Let all layers go; the next ``model.train()`` or ``model.eval()`` decides."""
        for layer in self.layers:
            layer.train()
        self.layers = []


def _is_frozen(model: nn.Module, name: str, module: nn.Module) -> bool:
    while next(module.parameters(), None) is None and name:
        name = name.rpartition(".")[0]
        module = model.get_submodule(name)
    return not any(parameter.requires_grad for parameter in module.parameters())


def find_matching(
    hook: Hook, named: Mapping[str, nn.Parameter], patterns: Sequence[str]
) -> dict[str, nn.Parameter]:
    """Return the parameters that match any pattern; reject a pattern that matches none."""
    chosen: dict[str, nn.Parameter] = {}
    for pattern in patterns:
        # fnmatchcase, because fnmatch ignores the case on Windows.
        found = {name: parameter for name, parameter in named.items() if fnmatchcase(name, pattern)}
        if not found:
            raise HookError(
                f"{type(hook).__name__}: no parameter matches '{pattern}'."
                f"{nearest(pattern, named) or ' There are: ' + ', '.join(list(named)[:8]) + '.'}"
            )
        chosen |= found
    return chosen
