"""`Hook`: one typed method per mount point.

A subclass overrides the methods it needs and nothing else; a point that it does not override
costs nothing. This module knows neither torch nor the loop.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from hookloop import peers
from hookloop.arguments import check_names, check_values, snake_case
from hookloop.beside import is_own
from hookloop.errors import HookError, nearest
from hookloop.every import Every

if TYPE_CHECKING:
    from hookloop.checkpoint.store.index import Saved
    from hookloop.engine.points import Point
    from hookloop.engine.run import Run
    from hookloop.requests import Rewind

_POSITIONAL = inspect.Parameter.POSITIONAL_ONLY

OnError = Literal["raise", "disable"]
SCHEDULES, AVERAGED = "schedules", "averaged weights"
"""What one hook of a run may own; see `Hook.owns`."""
Call = Callable[..., None]


class Priority(IntEnum):
    """The order of hooks at a point: names on the scale 0..100; the lower number acts first.

    >>> Priority.parse("above_normal"), Priority.parse(55)
    (40, 55)
    """

    HIGHEST = 0
    VERY_HIGH = 10
    HIGH = 30
    ABOVE_NORMAL = 40
    NORMAL = 50
    BELOW_NORMAL = 60
    LOW = 70
    VERY_LOW = 90
    LOWEST = 100

    @classmethod
    def parse(cls, value: Priority | int | str) -> int:
        """Read a name in any case, or a whole number from 0 to 100."""
        if isinstance(value, str):
            member = cls.__members__.get(value.strip().upper())
            if member is None:
                raise HookError(
                    f"'{value}' is not a priority.{nearest(value, cls.__members__)} "
                    f"Write 0..100 or one of {', '.join(cls.__members__)}."
                )
            return int(member)
        if isinstance(value, bool) or not isinstance(value, int):  # True would be a 1.
            raise HookError(f"{value!r} is not a priority: write a whole number 0..100 or a name.")
        if not 0 <= value <= 100:
            raise HookError(f"{value} is not a priority: it must lie between 0 and 100.")
        return int(value)


class Hook:
    """Something that acts at mount points of a run.

    State that has to survive a resume goes through `state_dict` and `load_state_dict`; it is kept
    in checkpoints under the hook's name, which is unique in a run.

    Attributes:
        name: Unique in a run; by default the class name in snake case.
        priority: Order at a point, 0..100 or a name; the lower acts first, ties as given.
        reads: Names in the metric store that the hook reads; ``fnmatch`` patterns allowed.
        writes: Names that it puts there. A reader before its only writer is rejected.
        ends_training: Whether it is sure to end a training, which then needs no other limit.
        owns: What it alone may do in a run: ``("schedules",)`` to step the schedules, ``("averaged
            weights",)`` to keep those of a checkpoint, or a word of your own. A second hook with
            the same word is rejected.
        takes_part_in_training: Whether it may change the training; it then draws from the
            training's random numbers. Any other hook draws from a sequence of its own.
        draws_random_numbers: False, in a hook that never draws, saves a check at each firing. It
            holds for the class that sets it, not for its subclasses.
        changes_what_trains: Whether it freezes parameters, or unfreezes them, during a run.
        guards_by: What it does at a loss or gradient that is not finite: ``"dropping"`` the update,
            ``"stopping"`` within the iteration, ``"failing"`` later or ``"rewinding"``; None if
            that is not its task. The others are told, and rejected where they could never act.
        sends: Whether it sends to a service, or writes to a place of its own; short runs beside a
            training leave it out.
        ranks: Where it runs, if there are several: on ``"all"`` ranks, or on the ``"first"`` one,
            which writes files and messages.
        every: Limits the methods at points of that clock, for example ``"50 iters"``.
        counts: What it reads of ``run.progress.samples`` and ``.tokens``, which are counted only
            if somebody asks: ``("samples",)``.
        fires: Mount points that it brings along and fires with ``run.fire``; any hook may use them.
        on_error: ``"raise"`` ends the run, ``"disable"`` warns once and continues without the hook.

    >>> class CountNans(Hook):
    ...     def after_train_iter(self, run):
    ...         run.metrics.put("nans", float(run.loss != run.loss))
    >>> CountNans().name
    'count_nans'
    """

    name: str = "hook"
    priority: Priority | int | str = Priority.NORMAL
    reads: Sequence[str] = ()
    writes: Sequence[str] = ()
    ends_training: bool = False
    owns: Sequence[str] = ()
    takes_part_in_training: bool = False
    draws_random_numbers: bool = True
    changes_what_trains: bool = False
    guards_by: Literal["dropping", "stopping", "failing", "rewinding"] | None = None
    sends: bool = False
    ranks: Literal["all", "first"] = "all"
    every: Every | int | str | None = None
    counts: Sequence[str] = ()
    fires: Sequence[Point] = ()
    on_error: OnError = "raise"
    # Of a hook that calls the methods of another object: messages name that, and its code is looked
    # at for what it requests, by which names.
    stands_for: object = None
    requests_by: Sequence[str] = ("stop", "save", "validate")

    if not TYPE_CHECKING:  # Type checkers look at the constructor itself.

        def __new__(cls, *args: object, **kwargs: object) -> Self:
            if args or kwargs:  # `copy` and `pickle` pass none.
                check_names(cls, args, kwargs, peers.HOOK_ARGUMENTS)
                # The types of a user's own arguments are the user's business.
                if is_own(cls):
                    check_values(cls, args, kwargs)
            return super().__new__(cls)

        __new__.__signature__ = inspect.Signature([inspect.Parameter("cls", _POSITIONAL)])

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in cls.__dict__:  # Not inherited: each class has a name of its own.
            cls.name = snake_case(cls.__name__)
        if "draws_random_numbers" not in cls.__dict__:  # A subclass may draw in what it adds.
            cls.draws_random_numbers = True

    def named(self, name: str) -> Self:
        """Give this instance another name, so that two of a class fit in one run."""
        self.name = name
        return self

    def state_dict(self) -> dict[str, object]:
        """Return what a checkpoint has to hold: plain containers, numbers, text and tensors."""
        return {}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Restore what `state_dict` returned."""

    def describe(self, run: Run) -> Mapping[str, object]:
        """Return the hook's present state in a few plain values, for people to read."""
        return {}

    def check_in(self, run: Run) -> None:
        """Reject a run in which the hook cannot work: other hooks, or data that it needs."""

    def check_setup(self) -> None:
        """Reject what is wrong with the hook as far as that shows without a run or a network."""

    def change_update(self, run: Run, update: Any) -> Any:  # noqa: ANN401 - of a higher room
        """Return the `Update` that is made in the place of one; `Update.like` makes one of a class.

        It is asked before a training, after the hooks before it, once for each update of an
        iteration. A hook that cannot work with the update that it gets raises a `HookError`.
        """
        return update

    def stores(self, run_dir: Path) -> Sequence[str]:
        """List the directories and URLs besides the run's own in which it keeps checkpoints.

        A resume looks there and nowhere else: what a file in a run directory names is not opened.
        """
        return ()

    # The mount points, in the order of the table in points.py. They are empty and not abstract, so
    # that a hook may call `super()` and a plan can tell which of them a hook overrides.

    def before_run(self, run: Run) -> None: ...
    def after_load_checkpoint(self, run: Run, checkpoint: MutableMapping[str, object]) -> None: ...
    def before_train(self, run: Run) -> None: ...
    def before_epoch(self, run: Run) -> None: ...
    def before_train_epoch(self, run: Run) -> None: ...
    def before_train_iter(self, run: Run) -> None: ...
    def before_forward(self, run: Run) -> None: ...
    def after_forward(self, run: Run) -> None: ...
    def after_loss(self, run: Run) -> None: ...
    def after_backward(self, run: Run) -> None: ...
    def before_update(self, run: Run) -> None: ...
    def after_update(self, run: Run) -> None: ...
    def after_train_iter(self, run: Run) -> None: ...
    def after_train_epoch(self, run: Run) -> None: ...
    def before_val(self, run: Run) -> None: ...
    def before_val_epoch(self, run: Run) -> None: ...
    def before_val_iter(self, run: Run) -> None: ...
    def after_val_iter(self, run: Run) -> None: ...
    def after_val_epoch(self, run: Run, metrics: Mapping[str, float]) -> None: ...
    def after_val(self, run: Run) -> None: ...
    def after_epoch(self, run: Run) -> None: ...
    def after_epoch_profile(self, run: Run) -> None: ...
    def after_train(self, run: Run) -> None: ...
    def before_test(self, run: Run) -> None: ...
    def before_test_epoch(self, run: Run) -> None: ...
    def before_test_iter(self, run: Run) -> None: ...
    def after_test_iter(self, run: Run) -> None: ...
    def after_test_epoch(self, run: Run, metrics: Mapping[str, float]) -> None: ...
    def after_test(self, run: Run) -> None: ...
    def before_predict(self, run: Run) -> None: ...
    def before_predict_epoch(self, run: Run) -> None: ...
    def before_predict_iter(self, run: Run) -> None: ...
    def after_predict_iter(self, run: Run) -> None: ...
    def after_predict_epoch(self, run: Run) -> None: ...
    def after_predict(self, run: Run) -> None: ...
    def before_save_checkpoint(self, run: Run, checkpoint: MutableMapping[str, object]) -> None: ...
    def after_save_checkpoint(self, run: Run, saved: Saved) -> None: ...
    def after_rewind(self, run: Run, rewind: Rewind) -> None: ...
    def on_stop(self, run: Run, reason: str) -> None: ...
    def on_exception(self, run: Run, error: BaseException) -> None: ...
    def after_run(self, run: Run) -> None: ...


class FunctionHook(Hook):
    """A function attached to one mount point."""

    def __init__(
        self,
        function: Callable[..., None],
        point: str,
        *,
        every: Every | int | str | None = None,
        priority: Priority | int | str = Priority.NORMAL,
        takes_part_in_training: bool = False,
    ) -> None:
        self.name = f"{getattr(function, '__name__', 'function')}@{point}"
        self.every = every
        self.takes_part_in_training = takes_part_in_training
        self.priority = priority
        setattr(self, point, function)  # On the instance, where the plan looks first.


def acts_at(hook: Hook, points: Mapping[str, Point]) -> list[str]:
    """List the points at which a hook does something."""
    return [name for name, point in points.items() if method_of(hook, point.name)]


def method_of(hook: Hook, point: str) -> Call | None:
    """Return the hook's method at a point, unless it is the base's empty one."""
    method: Call | None = getattr(hook, point, None)
    # A point that the project declared is not a method of `Hook`; then nothing is equal to `hook`.
    if method is None or getattr(method, "__func__", None) is getattr(Hook, point, hook):
        return None
    return method


def interval_at(hook: Hook, point: Point) -> Every | None:
    """Return what limits a hook at a point: the method's interval, or the hook's in that unit."""
    own: Every | None = getattr(method_of(hook, point.name), "every", None)
    if own is not None or hook.every is None:
        return own
    interval = Every.parse(hook.every)
    return interval if interval.fits(point.clock, ahead=point.ahead) else None


def priority_of(hook: Hook) -> int:
    """Read a hook's priority as a number."""
    try:
        return Priority.parse(hook.priority)
    except HookError as error:
        raise HookError(f"{kind_of(hook)}.priority: {error}") from error


def reaches_outside(hook: object) -> str | None:
    """Return how a hook reaches out of the run's directory; None if it does not.

    Short runs leave such hooks out, so that they change nothing but a directory that goes away. A
    checkpoint's own directory is not looked at: whoever makes the short run sets it.
    """
    if getattr(hook, "sends", False):
        return f"{kind_of(cast('Hook', hook))} sends to a service, or writes to a place of its own"
    is_ours = type(hook).__module__.startswith("hookloop.hooks.")
    for name, value in vars(hook).items() if is_ours else ():
        if name != "directory" and isinstance(value, str | Path) and Path(value).is_absolute():
            return f"{kind_of(cast('Hook', hook))} writes to {value}"
    return None


def kind_of(hook: Hook) -> str:
    """Return the name of a hook's class for messages, or of that of the object it stands for."""
    other = getattr(hook, "stands_for", None)
    return type(hook if other is None else other).__name__
