"""`ScheduleAttribute`: change a number of a hook, the model or the loss during training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from hookloop.engine.hook import Hook, Priority
from hookloop.errors import HookError, IntervalError, nearest
from hookloop.every import COUNTED, Milestones

if TYPE_CHECKING:
    from hookloop.engine.run import Run

WAYS = ("step", "linear")


class ScheduleAttribute(Hook):
    """Change a numeric attribute of a hook, the model or the loss along the run.

    The value depends only on what is completed, so a resumed run continues exactly. It is set
    before each iteration, ahead of other hooks.

    Args:
        attribute: ``"mix_up.alpha"`` for a hook by its name, ``"model.head.temperature"`` or
            ``"loss.label_smoothing"`` for a part of the model or of the loss.
        values: A mapping from moments of the run to numbers: ``{0: 0.1, "5 epochs": 0.0}``. All
            moments but the start are in one unit: iterations, epochs, samples or tokens.
        how: ``"step"`` jumps at each moment, ``"linear"`` moves from one to the next; with moments
            in epochs, once per epoch.

    Example:
        >>> hook = ScheduleAttribute("loss.label_smoothing", {0: 0.1, 200: 0.0}, how="linear")
        >>> hook.value(0), hook.value(100), hook.value(500)
        (0.1, 0.05, 0.0)
    """

    priority = Priority.HIGHEST  # Hooks that act in the same iteration see the new value.
    takes_part_in_training = True

    def __init__(
        self,
        attribute: str,
        values: Mapping[int | str, float],
        how: Literal["step", "linear"] = "step",
    ) -> None:
        if how not in WAYS:
            raise HookError(
                f"ScheduleAttribute: how='{how}': write {' or '.join(WAYS)}.{nearest(how, WAYS)}"
            )
        if not isinstance(values, Mapping):
            raise HookError(
                f"ScheduleAttribute: values={values!r}: it must be a mapping such as "
                "{0: 0.1, '5 epochs': 0.0}."
            )
        try:
            self.milestones = Milestones.parse(values)
        except IntervalError as error:
            raise HookError(f"ScheduleAttribute: values: {error}") from error
        self.attribute = attribute
        self.how = how
        if self.milestones.unit in COUNTED:
            self.counts = (self.milestones.unit,)
        self._holder: object = None
        self._last = ""

    def value(self, done: int) -> float:
        """Return the value after so many iterations, epochs, samples or tokens."""
        return self.milestones.at(done) if self.how == "step" else self.milestones.between(done)

    def check_in(self, run: Run) -> None:
        self._find(run)

    def before_train(self, run: Run) -> None:
        self._holder, self._last = self._find(run)

    def before_train_iter(self, run: Run) -> None:
        # Computed, never accumulated: no state to save, and nothing drifts.
        setattr(self._holder, self._last, self.value(self.milestones.done(run.progress)))

    def _find(self, run: Run) -> tuple[object, str]:
        """Return what has the attribute, and the name under which it has it."""
        roots: dict[str, object] = {"model": run.model, "loss": run._internals.loss_function}
        roots |= {hook.name: hook for hook in run.hooks}
        # The longest name first: that of a hook may contain dots.
        matching = [name for name in roots if self.attribute.startswith(f"{name}.")]
        if not matching:
            first = self.attribute.partition(".")[0]
            raise HookError(
                f"ScheduleAttribute: '{self.attribute}' begins with no hook of this run, nor with "
                f"model or loss.{nearest(first, roots)}"
            )
        name = max(matching, key=len)
        holder, path = roots[name], self.attribute.removeprefix(f"{name}.").split(".")
        for depth, part in enumerate(path):
            if part.startswith("_") or not hasattr(holder, part):
                where = ".".join((name, *path[:depth]))
                options = [one for one in _names(holder) if not one.startswith("_")]
                raise HookError(
                    f"ScheduleAttribute: '{where}' ({type(holder).__name__}) has no attribute "
                    f"'{part}'.{nearest(part, options)}"
                )
            if depth + 1 < len(path):
                holder = getattr(holder, part)
        now = getattr(holder, path[-1])
        if isinstance(now, bool) or not isinstance(now, int | float):
            raise HookError(
                f"ScheduleAttribute: '{self.attribute}' is {type(now).__name__}, not a number."
            )
        return holder, path[-1]


def _names(holder: object) -> list[str]:
    """List the attributes of an object; ``dir`` of a module has its parts, too."""
    return [name for name in dir(holder) if not callable(getattr(holder, name, None))] + [
        name for name, _ in getattr(holder, "named_children", lambda: ())()
    ]
