"""`Companion`: the native hook that keeps what all hooks of one dialect share in a run.

Counters that the engine does not have, the data that the hooks of one system pass to each other,
the log buffer: kept once, by one hook that acts before the adapted ones and has its own state in
checkpoints. The first adapted hook brings it into the run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

from hookloop.core.hook import Hook, Priority

if TYPE_CHECKING:
    from hookloop.core.run import Run
    from hookloop.dialects.adapter import Facade

Kind = TypeVar("Kind", bound="Facade")


class Companion(Hook):
    """What a dialect does besides calling foreign hooks; a subclass says it at mount points."""

    priority = Priority.HIGHEST
    takes_part_in_training = True

    def join(self, run: Run) -> None:
        """Come into the run, unless another adapted hook has brought it along already."""
        if self not in run.hooks:
            run.plan.add(self)
            self.before_run(run)


def facade_in(run: Run, make: Callable[[Run], Kind]) -> Kind:
    """Return the facade of a run, which is made when it is first asked for."""
    key = f"{make.__module__}.{make.__qualname__}"
    if key not in run.facades:
        run.facades[key] = make(run)
    return cast("Kind", run.facades[key])
