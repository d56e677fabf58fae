"""`Companion`: the native hook that keeps what the hooks of one dialect share in a run.

It holds the counters that the engine lacks, the data that the hooks of one system pass to each
other, the log buffer. It acts before the adapted hooks and has its own state in checkpoints. The
first adapted hook adds it to the run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

from hookloop.engine.hook import Hook, Priority

if TYPE_CHECKING:
    from hookloop.dialects.adapter import Facade
    from hookloop.engine.run import Run

Kind = TypeVar("Kind", bound="Facade")


class Companion(Hook):
    """A native hook for what a dialect does besides calling foreign hooks; subclasses define it."""

    priority = Priority.HIGHEST  # The adapted hooks must find counters and data up to date.
    # So that it sees the training's random numbers: a companion may save and restore them.
    takes_part_in_training = True

    def join(self, run: Run) -> None:
        """Join the run, unless another adapted hook has added it already."""
        if self not in run.hooks:
            run._plan.add(self)
            # The plan is firing before_run right now and does not call a hook added meanwhile.
            self.before_run(run)


def facade_in(run: Run, make: Callable[[Run], Kind]) -> Kind:
    """Return the facade of a run; the first call makes it."""
    key = f"{make.__module__}.{make.__qualname__}"
    if key not in run._internals.shared:
        run._internals.shared[key] = make(run)
    return cast("Kind", run._internals.shared[key])
