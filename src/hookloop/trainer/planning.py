"""The hooks of a Trainer, the plan that follows from them, and its table of times.

Before hooks run on many ranks, the names that their code uses are looked at for what would hang, or
write one file several times. That finds the usual mistakes before they cost a training; what is
well hidden is not found.
"""

from __future__ import annotations

import dis
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import CodeType
from typing import TYPE_CHECKING

from hookloop.beside import is_own
from hookloop.engine.hook import FunctionHook, Hook, interval_at, kind_of, priority_of
from hookloop.engine.plan import Plan
from hookloop.engine.points import PointTable
from hookloop.errors import HookError
from hookloop.every import Every
from hookloop.hooks.schedules.step_schedules import StepSchedules
from hookloop.hooks.writing.write_metrics import WriteMetrics
from hookloop.metrics.store import EPOCH_STREAM
from hookloop.trainer.inputs import produced_names

if TYPE_CHECKING:
    from hookloop.engine.plan import Plan
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
        for hook in self.hooks:  # So that a metric which nobody produces is rejected.
            if type(hook) is StepSchedules:
                hook.reads = tuple(one.metric for one in run.schedules.values() if one.metric)
                # Without a schedule there is nothing to own.
                hook.owns = StepSchedules.owns if run.schedules else ()
        streams = {"val": run.val_data, "test": run._internals.test_data}
        produced = produced_names(updates, run._internals.meters, streams) | besides
        # With getattr, because the list may hold anything: only the plan rejects what is not a
        # hook.
        written = [name for hook in self.hooks for name in getattr(hook, "writes", ())]
        produced |= _epoch_means([*produced, *written])
        basis = (produced, [_declared(hook) for hook in self.hooks])
        if self._made is not None and self._made[1] == basis:
            run._plan = self._made[0]
            return
        is_first = run.world.is_main
        run._plan = Plan(self.hooks, self.points, produced, is_first=is_first)
        self._made = run._plan, basis

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


_EXCHANGES = {("run", "gather"), ("run", "reduce")}
_SAVES = {("torch", "save"), ("np", "save"), ("numpy", "save")}
_WRITES = {"write_text", "write_bytes", "savefig", "savez", "savez_compressed", "to_csv"}
_KNOWS_RANKS = {"world", "rank", "is_main", "get_rank"}
_MODES = {"w", "a", "x", "wb", "ab", "xb", "wt", "at", "xt"}


def check_on_ranks(hooks: Iterable[Hook]) -> None:
    """Reject hooks of the user's that cannot work on many ranks.

    Raises:
        HookError: If one exchanges data where not all ranks are, or if all ranks would write the
            same file.
    """
    for hook in hooks:
        codes = list(_codes(hook))
        pairs = {pair for code in codes for pair in _pairs(code)}
        if _is_on_first(hook) and pairs & _EXCHANGES:
            raise HookError(
                f"{kind_of(hook)} runs on the first rank alone, and waits in run.gather() or "
                "run.reduce() for the others, which do not come: write ranks = 'all' and no "
                "interval in time, and let the first rank act with 'if run.world.is_main'."
            )
        names = {name for code in codes for name in code.co_names}
        writes = names & _WRITES or pairs & _SAVES or any(map(_opens_for_writing, codes))
        if writes and not (names & _KNOWS_RANKS or _declares_ranks(hook)):
            raise HookError(
                f"{kind_of(hook)} writes files, and would write each of them on all ranks: declare "
                "ranks = 'first' in its class, or use run.world in it. If each rank has its own "
                "files, declare ranks = 'all'."
            )


def _is_on_first(hook: Hook) -> bool:
    is_by_clock = hook.every is not None and Every.parse(hook.every).unit == "seconds"
    return hook.ranks == "first" or is_by_clock


def _declares_ranks(hook: Hook) -> bool:
    kinds = [kind for kind in type(hook).__mro__ if kind is not Hook]
    return "ranks" in vars(hook) or any("ranks" in vars(kind) for kind in kinds)


def _codes(hook: Hook) -> Iterator[CodeType]:
    """Yield the code of the hook's methods, except for what is hookloop's own."""
    for members in (vars(hook), *map(vars, type(hook).__mro__)):
        for value in members.values():
            code = getattr(value, "__code__", None)
            if isinstance(code, CodeType) and not is_own(value):
                yield from _with_inner(code)


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _with_inner(constant)


def _pairs(code: CodeType) -> Iterator[tuple[object, object]]:
    """Yield what is looked up right after what: ``("torch", "save")`` for ``torch.save``."""
    before: object = None
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            yield before, instruction.argval
        if instruction.opname not in ("CACHE", "PUSH_NULL"):
            before = instruction.argval


def _opens_for_writing(code: CodeType) -> bool:
    return "open" in code.co_names and any(
        isinstance(constant, str) and constant in _MODES for constant in code.co_consts
    )


@dataclass(frozen=True)
class Row:
    """One line of the timetable: a hook that acts at a point, and what it declares."""

    point: str
    hook: str
    priority: int
    every: Every | None
    reads: tuple[str, ...]
    writes: tuple[str, ...]


def timetable_of(plan: Plan) -> list[Row]:
    """List who acts where, in the order of the table and of the calls."""
    return [
        Row(
            point.name,
            hook.name,
            priority_of(hook),
            interval_at(hook, point),
            tuple(hook.reads),
            tuple(hook.writes),
        )
        for point in plan.points.values()
        for hook in plan.calls(point.name).hooks
    ]
