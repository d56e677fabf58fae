"""`AugmentAtTest`: predict from several views of each input."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

import torch
from torch import Tensor, nn

from hookloop.engine.hook import Hook
from hookloop.errors import HookError, nearest

if TYPE_CHECKING:
    from torch.utils.hooks import RemovableHandle

    from hookloop.engine.run import Run

View = Callable[[Any], Any]
MERGES = ("mean", "max")


class AugmentAtTest(Hook):
    """Show the model several views of each input in evaluation, and merge its outputs.

    It wraps the model, so it works with any step. Training is not affected.

    Args:
        views: Functions of the model's first input; a pair of functions if the output has to be
            turned back, as with flipped masks: ``(flip, flip)``.
        merge: ``"mean"``, ``"max"``, or a function of the list of outputs. The first two merge
            float tensors, also inside mappings and sequences, and take other values from the first
            output.
        phases: Where: ``"test"``, ``"val"``, ``"predict"``.
        original: Whether the unchanged input is one of the views.

    Example:
        >>> hook = AugmentAtTest([lambda image: image.flip(-1)])
        >>> hook.join([torch.tensor([1.0, 4.0]), torch.tensor([3.0, 0.0])])
        tensor([2., 2.])
    """

    takes_part_in_training = True

    def __init__(
        self,
        views: Sequence[View | Sequence[View]],
        *,
        merge: Literal["mean", "max"] | Callable[[list[Any]], object] = "mean",
        phases: Sequence[str] = ("test",),
        original: bool = True,
    ) -> None:
        if not views:
            raise HookError("AugmentAtTest: give at least one view, a function of the input.")
        if not callable(merge) and merge not in MERGES:
            raise HookError(
                f"AugmentAtTest: merge={merge!r}: write 'mean', 'max' or give a function."
                f"{nearest(str(merge), MERGES)}"
            )
        if not phases or set(phases) - {"val", "test", "predict"}:
            raise HookError(f"AugmentAtTest: phases={list(phases)}: write val, test or predict.")
        self.views = [_pair(view) for view in views]
        self.merge = merge
        self.phases = tuple(phases)
        self.original = original
        self._handle: RemovableHandle | None = None

    def before_val_epoch(self, run: Run) -> None:
        if run.phase in self.phases and self._handle is None:
            self._handle = run.model.register_forward_hook(self._predict, with_kwargs=True)

    def after_val(self, run: Run) -> None:
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    before_test_epoch = before_predict_epoch = before_val_epoch
    after_test = after_predict = after_run = (
        after_val  # Also after a failure, which skips after_val.
    )

    def _predict(
        self,
        model: nn.Module,
        args: tuple[object, ...],
        kwargs: dict[str, object],
        output: object,
    ) -> object:
        outputs = [output] if self.original else []
        for change, turn_back in self.views:
            # forward(), not the model itself, which would call this hook again.
            if args:
                view_output = model.forward(change(args[0]), *args[1:], **kwargs)
            else:
                first = next(iter(kwargs))
                view_output = model.forward(**{**kwargs, first: change(kwargs[first])})
            outputs.append(turn_back(view_output))
        return self.join(outputs)

    def join(self, outputs: list[object]) -> object:
        """Merge outputs of the same form into one."""
        if callable(self.merge):
            return self.merge(outputs)
        first = outputs[0]
        if isinstance(first, Tensor):
            if not first.is_floating_point():
                return first
            stacked = torch.stack(cast("list[Tensor]", outputs))
            return stacked.mean(0) if self.merge == "mean" else stacked.amax(0)
        if isinstance(first, Mapping):
            mappings = cast("list[Mapping[str, object]]", outputs)
            return {key: self.join([mapping[key] for mapping in mappings]) for key in first}
        if isinstance(first, tuple | list):
            columns = zip(*cast("list[list[object]]", outputs), strict=True)
            joined = [self.join(list(column)) for column in columns]
            # A named tuple takes its values as separate arguments.
            make = cast("Callable[[list[object]], object]", getattr(first, "_make", type(first)))
            return make(joined)
        return first


def _pair(view: View | Sequence[View]) -> tuple[View, View]:
    pair = tuple(view) if isinstance(view, tuple | list) else ()
    functions = (view, lambda output: output) if callable(view) else pair
    if len(functions) != 2 or not all(map(callable, functions)):
        raise HookError(
            f"AugmentAtTest: {view!r} is not a view: give a function, or a pair of functions."
        )
    return functions[0], functions[1]
