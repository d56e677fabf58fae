"""`FreezeParameters`: keep some parameters fixed at the beginning of a training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal, Self

from torch import nn
from torch.nn import Parameter
from torch.nn.modules.batchnorm import _NormBase

from hookloop.engine.hook import Hook
from hookloop.errors import HookError, nearest
from hookloop.hooks._intervals import moment_of

if TYPE_CHECKING:
    from hookloop.engine.run import Run
    from hookloop.requests import Rewind


class FreezeParameters(Hook):
    """Freeze the parameters whose names match, until a moment of the run.

    They get no gradients, so optimizers skip them. Buffers keep changing, unless ``norms="eval"``
    holds the statistics of batch norm. Parameters that were frozen before stay frozen; the others
    thaw when the run ends.

    Args:
        patterns: Names or ``fnmatch`` patterns: ``"backbone.*"``, ``"*.bias"``.
        until: When to thaw them, in completed iterations or epochs: ``500``, ``"2 epochs"``; None
            for the whole run.
        norms: ``"eval"`` holds batch and instance norms whose parameters are all frozen in
            evaluation mode, in training too: they use their running statistics and keep them.

    Example:
        >>> str(FreezeParameters("backbone.*", until="2 epochs").until)
        '2 epochs'
    """

    takes_part_in_training = True
    changes_what_trains = True

    def __init__(
        self,
        patterns: str | Sequence[str],
        until: int | str | None = None,
        *,
        norms: Literal["train", "eval"] = "train",
    ) -> None:
        self.patterns = (patterns,) if isinstance(patterns, str) else tuple(patterns)
        if not self.patterns:
            raise HookError("FreezeParameters: give at least one pattern.")
        self.until = None if until is None else moment_of(self, "until", until)
        self._frozen: list[Parameter] = []
        self._norms = FrozenNorms.of(self, norms)

    def before_train(self, run: Run) -> None:
        # First, so that a misspelled pattern is rejected in a resumed run too.
        chosen = list(
            find_matching(self, dict(run.model.named_parameters()), self.patterns).values()
        )
        if self._is_over(run):
            return
        # Only these: what the user has frozen must not be thawed at the end.
        self._frozen = [parameter for parameter in chosen if parameter.requires_grad]
        trainable = sum(parameter.requires_grad for parameter in run.model.parameters())
        if len(self._frozen) == trainable:
            self._frozen = []
            raise HookError(
                f"FreezeParameters: {', '.join(self.patterns)} matches every trainable parameter: "
                "nothing would be trained."
            )
        for parameter in self._frozen:
            parameter.requires_grad_(False)
            parameter.grad = None  # With a gradient of zeros, momentum and weight decay would act.
        self._norms.find(run.model)

    def after_rewind(self, run: Run, rewind: Rewind) -> None:
        self._thaw()
        self.before_train(run)  # What has thawed since the checkpoint is frozen again.

    def after_train_iter(self, run: Run) -> None:
        if self._frozen and self._is_over(run):
            self._thaw()

    def after_train_epoch(self, run: Run) -> None:
        if self._frozen and self._is_over(run):
            self._thaw()

    def after_run(self, run: Run) -> None:
        self._thaw()  # The model belongs to the user, who may continue with it.

    def _is_over(self, run: Run) -> bool:
        return self.until is not None and self.until.reached(run.progress)

    def _thaw(self) -> None:
        for parameter in self._frozen:
            parameter.requires_grad_(True)
        self._frozen = []
        self._norms.release()


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
