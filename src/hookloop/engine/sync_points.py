"""Sync points: iterations at which ranks tell each other what only one of them knows.

Most decisions need no talk, because they follow from counters and metrics that are equal on all
ranks. The others do: a signal, a clock, a request that a hook makes on one rank, a checkpoint that
has become durable. They wait for the next sync point, and are then obeyed by all ranks in the same
iteration. In an iteration without a sync point nothing is exchanged.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from time import monotonic
from types import CodeType
from typing import TYPE_CHECKING

from hookloop.beside import is_own
from hookloop.engine.hook import method_of
from hookloop.errors import HookError
from hookloop.requests import Requests

if TYPE_CHECKING:
    from hookloop.engine.hook import Hook
    from hookloop.engine.plan import Plan
    from hookloop.engine.run import Run

NEVER = sys.maxsize

PERIOD = 0.5
"""Seconds between two sync points: a signal to one rank is obeyed within that time."""

SHORTEST, LONGEST = 2, 1000
"""Iterations between two sync points, whatever their duration."""


class SyncPoints:
    """When the ranks of a run meet, and what they agree on there.

    Args:
        run: The run.

    Attributes:
        next: The iteration after which they meet; a number that is never reached in one process.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._is_alone = run.world.is_alone
        self._is_frequent = False
        self._last = (0, 0.0)
        self._seconds = PERIOD  # Of an iteration, as far as is known.
        self.next = NEVER

    def begin(self, at: int) -> None:
        """Set the first sync point, after the first iterations or batches counted from ``at``."""
        if self._is_alone:
            return
        self._last = at, monotonic()
        self._is_frequent = any(
            may_request(hook) for hook in _acting_in_iterations(self._run._plan)
        )
        self.next = at + (1 if self._is_frequent else SHORTEST)

    def hold(self, at: int) -> bool:
        """Return whether anything was requested, in one process; meet to find out on many ranks.

        Afterwards `Run.requests` has the requests of all ranks, in the order of the ranks.
        """
        run = self._run
        if self._is_alone:
            return run._internals.requests.any
        wishes, run._internals.wishes = run._internals.wishes, Requests()
        shared = int(run._internals.requests.any)
        has_wish, is_shared, is_missing, distance = run._internals.ranks.largest(
            [int(wishes.any), shared, 1 - shared, self._distance(at)]
        )
        self._last, self.next = (at, monotonic()), at + distance
        if is_shared and is_missing:
            self._reject_lonely(shared)
        if has_wish:
            own = run.world.rank
            for rank, wish in enumerate(run._internals.ranks.gather(wishes.sendable())):
                run._internals.requests.add(wishes if rank == own else wish, run.progress.iter)
        return run._internals.requests.any

    def _distance(self, at: int) -> int:
        """Return how many iterations from now this rank wants to meet again."""
        if self._is_frequent:
            return 1
        last, since = self._last
        if at > last:  # Several sync points may follow an iteration, which say nothing of the time.
            self._seconds = max((monotonic() - since) / (at - last), 1e-9)
        return max(SHORTEST, min(LONGEST, int(PERIOD / self._seconds)))

    def _reject_lonely(self, shared: int) -> None:
        asked = [rank for rank, has in enumerate(self._run._internals.ranks.gather(shared)) if has]
        raise HookError(
            f"After iteration {self._run.progress.iter} only the ranks {asked} made a request "
            "with everywhere=True, which all ranks have to make in the same iteration. Leave it "
            "out: the request is then obeyed at the next sync point of the ranks."
        )


def _acting_in_iterations(plan: Plan) -> Iterator[Hook]:
    # All hooks, also those that run on the first rank alone: every rank has to expect the sync
    # point.
    for point in plan.points.values():
        if point.is_busy and not any(name in point.name for name in ("val", "test", "predict")):
            yield from (hook for hook in plan.hooks if method_of(hook, point.name))


def may_request(hook: Hook) -> bool:
    """Return whether the code of a hook names a request, such as stop, save or validate.

    If it does, ranks meet after each iteration, so that what it requests is done in the same
    iteration as in one process. A request that is well hidden waits for the next sync point. Hooks
    of hookloop's own say themselves when a request is the same on all ranks.
    """
    own = [vars(hook), *(vars(kind) for kind in type(hook).__mro__)]
    if hook.stands_for is not None:
        own += [vars(kind) for kind in type(hook.stands_for).__mro__]
    functions = (value for members in own for value in members.values() if callable(value))
    return any(
        _names_any(getattr(function, "__code__", None), hook.requests_by)
        for function in functions
        if not is_own(function)
    )


def _names_any(code: CodeType | None, names: Sequence[str]) -> bool:
    if code is None:
        return False
    inner = (one for one in code.co_consts if isinstance(one, CodeType))
    return any(name in code.co_names for name in names) or any(
        _names_any(one, names) for one in inner
    )
