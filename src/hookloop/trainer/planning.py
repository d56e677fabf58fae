"""The hooks of a Trainer, and the plan that follows from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from hookloop.engine.hook import FunctionHook, Hook
from hookloop.engine.plan import Plan
from hookloop.engine.points import PointTable
from hookloop.errors import HookError
from hookloop.hooks.schedules.step_schedules import StepSchedules
from hookloop.hooks.writing.write_metrics import WriteMetrics
from hookloop.metrics.store import EPOCH_STREAM
from hookloop.trainer.inputs import produced_names

if TYPE_CHECKING:
    from hookloop.engine.run import Run
    from hookloop.update.update import Update

SINGLE: dict[type[Hook], tuple[str, str]] = {
    WriteMetrics: ("both would write metrics.jsonl", "metrics"),
    StepSchedules: ("each step of a schedule would be made twice", "schedule"),
}
"""Hooks that a run has once: what two of them would do, and the name of the standard one."""


class Planner:
    """Collects hooks, and makes the plan of the run when it is needed.

    Args:
        hooks: The hooks, in the order given; foreign ones are adapted already.
        points: The mount points of the run.
    """

    def __init__(self, hooks: Iterable[Hook], points: PointTable) -> None:
        self.hooks = list(hooks)
        self.points = points
        self._made: tuple[Plan, object] | None = None

    def attach(self, hook: FunctionHook) -> None:
        """Add a function; one that is attached twice gets a number in its name."""
        same = sum(other.name.split("#")[0] == hook.name for other in self.hooks)
        self.hooks.append(hook.named(f"{hook.name}#{same + 1}") if same else hook)

    def make(
        self, run: Run, updates: Iterable[Update], besides: frozenset[str] = frozenset()
    ) -> None:
        """Give the run its plan: verified, ordered and compiled.

        A plan that `check` or `timetable` has made is kept if nothing has changed since, so that
        hooks are verified once. A plan that a run has used is made again, with all hooks in it.

        Args:
            run: The run.
            updates: They compute the loss, whose metrics are written.
            besides: Metrics that are written besides the engine's own.

        Raises:
            HookError: If a hook cannot work.
        """
        # Without a schedule there is nothing that two of them could step twice.
        check_single(
            hook for hook in self.hooks if run.schedules or type(hook) is not StepSchedules
        )
        declare_points(self.hooks, self.points)
        streams = {"val": run.val_data, "test": run.test_data}
        produced = produced_names(updates, run.meters, streams) | besides
        # With getattr, because the list may hold anything: only the plan rejects what is not a
        # hook.
        written = [name for hook in self.hooks for name in getattr(hook, "writes", ())]
        produced |= _epoch_means([*produced, *written])
        basis = (produced, [_declared(hook) for hook in self.hooks])
        if self._made is not None and self._made[1] == basis:
            run.plan = self._made[0]
            return
        is_first = run.world.is_main
        run.plan = Plan(self.hooks, self.points, produced, is_first=is_first)
        self._made = run.plan, basis

    def use(self) -> None:
        """Note that a run uses the plan, in which it may disable and add hooks."""
        self._made = None


def check_single(hooks: Iterable[Hook]) -> None:
    """Reject a second hook of a kind that does its work once in a run."""
    hooks = list(hooks)
    for kind, (harm, name) in SINGLE.items():
        several = [hook for hook in hooks if type(hook) is kind]
        if len(several) > 1:
            names = " and ".join(f"'{hook.name}'" for hook in several)
            # The standard one has this name unless it was left out; the other one is the user's.
            own = next((hook.name for hook in several if hook.name != name), several[1].name)
            raise HookError(
                f"The hooks {names} are both {kind.__name__}: {harm}. Keep one of them; "
                f"default_hooks={{'{name}': {kind.__name__}(...)}} replaces the standard one.",
                own,
            )


def declare_points(hooks: Iterable[Hook], points: PointTable) -> None:
    """Add the mount points that hooks bring along; before hooks are checked, which may use them."""
    for hook in hooks:
        for point in getattr(hook, "fires", ()):
            if points.setdefault(point.name, point) != point:
                raise HookError(f"Two hooks bring different mount points '{point.name}'.")


def _declared(hook: Hook) -> tuple[object, ...]:
    """Return what a plan depends on: what a hook declares, and methods that were set on it."""
    names = ("name", "priority", "reads", "writes", "every", "on_error", "ranks")
    drawing = ("takes_part_in_training", "draws_random_numbers")
    # With a default: what is not a hook is rejected by the plan, with an explanation.
    declared = [getattr(hook, name, None) for name in (*names, *drawing)]
    # By id: two hooks that compare as equal are still two hooks.
    return (id(hook), type(hook), *declared, *_own_methods(hook))


def _own_methods(hook: object) -> Iterator[tuple[str, int]]:
    for name, value in getattr(hook, "__dict__", {}).items():
        if callable(value):
            yield name, id(value)


def _epoch_means(names: Iterable[str]) -> set[str]:
    """Name the means over training epochs that follow from what is recorded in iterations.

    >>> _epoch_means(["train/loss", "val/loss"])
    {'train_epoch/loss'}
    """
    return {
        f"{EPOCH_STREAM}/{name.removeprefix('train/')}"
        for name in names
        if name.startswith("train/")
    }
