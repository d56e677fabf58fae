"""`CheckArithmetic`: compute gradients twice now and then, and compare the bits."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hookloop.checkpoint.state.shape import check_state, is_count
from hookloop.engine.hook import Hook
from hookloop.errors import HookError
from hookloop.update.passes import Pass, Passes, why_not_repeated

if TYPE_CHECKING:
    from hookloop.engine.run import Run
    from hookloop.update.update import Group, Update

_log = logging.getLogger("hookloop")


class CheckArithmetic(Hook):
    """Find a processor that computes wrong numbers: gradients are computed twice and compared.

    In every so many iterations, the gradients of all microbatches are computed a second time, with
    the same random numbers, buffers and attributes, and compared to the last bit before the ranks
    average them; only hooks that take part in the training act again. If they differ, a third pass
    decides, where possible on another core. If two of the three agree, the fault was *transient*:
    the training continues with their bits, those of a clean run, and the fault is a warning and a
    line in ``interventions.jsonl``. If all differ it is *persistent*, and the run fails with a
    `FloatingPointError` that names the device and the module.

    The first iteration is checked as well. A model that does not repeat itself is told so there,
    with the operation, and is not checked. What is wrong in the same way each time is not seen.
    Without a fault, no bit of the run changes.

    Args:
        every: Iterations between two checks. A checked iteration takes about twice as long.

    Example:
        >>> CheckArithmetic(every=100).interval
        100
    """

    # It puts the right gradients in the place of wrong ones.
    takes_part_in_training = True
    draws_random_numbers = False

    def __init__(self, every: int = 500) -> None:
        if type(every) is not int or every < 1:
            raise HookError(f"CheckArithmetic: every={every!r} must be iterations, 1 or more.")
        self.interval = every
        self._checked = 0
        self._faults = 0
        self._calibrated: set[int] = set()
        self._unchecked: dict[int, str] = {}
        self._count = 0

    def describe(self, run: Run) -> dict[str, object]:
        why = "; ".join(dict.fromkeys(self._unchecked.values()))
        return {"checked": self._checked, "faults": self._faults} | ({"not": why} if why else {})

    def state_dict(self) -> dict[str, object]:
        return {"faults": self._faults}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        check_state(state, {"faults": is_count})
        self._faults = cast("int", state["faults"])

    def change_update(self, run: Run, update: Any) -> Any:  # noqa: ANN401 - of a higher room
        """Compute the gradients of an update twice, in some iterations."""
        number, self._count = self._count, self._count + 1
        reason = why_not_repeated(run, update)
        if reason is not None:
            self._leave_out(run, number, reason)
            return update
        return update.checked_by(partial(self._add_gradients, number))

    def before_train(self, run: Run) -> None:
        self._calibrated = set()  # The model may have been changed since the last call.

    def _leave_out(self, run: Run, number: int, reason: str) -> None:
        self._unchecked[number] = reason
        if run.world.is_main:
            _log.warning("CheckArithmetic checks nothing: %s.", reason)

    def _add_gradients(
        self, number: int, update: Update, run: Run, batches: list[object], group: Group | None
    ) -> bool:
        is_first = number not in self._calibrated
        is_due = is_first or (run.progress.iter + 1) % self.interval == 0
        if number in self._unchecked or not is_due or run.phase != "train":
            return update.gradients_of(run, batches, group)
        passes = Passes(update, run, batches, group)
        weights = passes.weights()
        first = passes.aside(modules=True)
        passes.put_back()
        if is_first:
            self._calibrated.add(number)
            if passes.weights() != weights:
                raise HookError(
                    "CheckArithmetic cannot compute an update twice: the step changes parameters "
                    "while it computes the loss. Leave the hook out."
                )
        made, real = passes.real()
        if made:
            made = self._judge(run, number, passes, first, real, is_first=is_first)
        if made and passes.weights() != weights:
            raise FloatingPointError(
                f"Iteration {run.progress.iter + 1}: parameters have changed while their gradients "
                f"were computed, on {_where(run)}: {', '.join(_changed(weights, passes))}. "
                "Continue from the last checkpoint, on another device."
            )
        passes.average()
        return made

    def _judge(
        self, run: Run, number: int, passes: Passes, first: Pass, real: Pass, *, is_first: bool
    ) -> bool:
        self._checked += 1
        # All ranks, as a module may need the others in its forward.
        if not run._internals.ranks.largest([int(first != real)])[0]:
            return True
        if is_first and (reason := self._why_not_the_same(run, passes)) is not None:
            passes.put_back()
            self._leave_out(run, number, reason)
            return passes.real(again=True)[0]
        passes.put_back()
        core = _core()
        with _on_another_core():
            third = passes.aside(modules=True)
        if len({first == real, real == third}) == 1 and first == real:
            return True  # It was another rank's.
        if third == real:
            self._note(run, first.place(third), core)
            return True
        if third == first:
            passes.put_back()
            made, again = passes.real(again=True)
            if again == first:
                self._note(run, real.place(first), core)
                return made
        place = first.place(third)
        run._internals.interventions.add(
            "arithmetic", run.progress.iter, verdict="persistent", place=place, core=core
        )
        raise FloatingPointError(
            f"Iteration {run.progress.iter + 1} was computed three times, with three results: they "
            f"part in {place}. {_where(run, core)} computes wrong numbers; the training stops. Use "
            "another device, and continue from the last checkpoint."
        )

    def _why_not_the_same(self, run: Run, passes: Passes) -> str | None:
        """Return why a model does not repeat itself; None if it does, so that it was a fault."""
        found = []
        for _ in range(2):
            passes.put_back()
            found.append(passes.aside(operations=True))
        is_unequal = run._internals.ranks.largest([int(found[0] != found[1])])[0]
        if not is_unequal:
            return None
        operation = found[0].operation(found[1]) or "another rank"
        return (
            f"the model does not repeat itself, first in {operation}; deterministic=True of the "
            "Trainer may change that"
        )

    def _note(self, run: Run, place: str, core: int | None) -> None:
        self._faults += 1
        now = run.progress.iter + 1
        run._internals.interventions.add(
            "arithmetic", now - 1, verdict="transient", place=place, core=core
        )
        _log.warning(
            "Iteration %d: %s computed wrong numbers once, in %s. Two of three passes agree, and "
            "the training continues with their bits.",
            now,
            _where(run, core),
            place,
        )


def _changed(before: Mapping[str, int], passes: Passes) -> list[str]:
    now = passes.weights()
    return [name for name in before if before[name] != now[name]][:3]


def _where(run: Run, core: int | None = None) -> str:
    rank = "" if run.world.is_alone else f"rank {run.world.rank}, "
    return f"{rank}{run.device}" + (f", core {core}" if core is not None else "")


def _core() -> int | None:
    """Return the core on which this thread computes; None where the system does not tell."""
    try:
        fields = Path("/proc/thread-self/stat").read_text().rpartition(")")[2].split()
        return int(fields[36])
    except (OSError, ValueError, IndexError):
        return None


@contextmanager
def _on_another_core() -> Iterator[None]:
    """Compute on another core, where there is one: this one may be wrong the same way again."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed, core = os.sched_getaffinity(0), _core()
    others = allowed - {core}
    if core is None or not others:
        yield
        return
    os.sched_setaffinity(0, others)
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)
