"""Write the record of a run: its starts and their changes, the passes over its data, its end."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Mapping
from operator import eq
from typing import TYPE_CHECKING

from hookloop.checkpoint.store.ancestry import path_from
from hookloop.data.position.origin import (
    draws_one_seed,
    first_seeds,
    names_of_origin,
    states_of,
)
from hookloop.hooks.measuring.record_environment import describe_torch
from hookloop.runs.environment import variables
from hookloop.runs.interventions import last_start, packed
from hookloop.runs.layout import RunDir
from hookloop.runs.moved_settings import moved
from hookloop.runs.policy import NOT_COMPARED
from hookloop.runs.records import plain
from hookloop.runs.trees import Difference, differences
from hookloop.trainer.intended_changes import written
from hookloop.version import VERSION

if TYPE_CHECKING:
    from hookloop.data.stream import Stream
    from hookloop.engine.hook import Hook
    from hookloop.engine.run import Run

LONGEST = 4500
"""Characters of the states in a line, which has 5 kB at most."""

BETWEEN_PASSES = 10
"""Iterations between two lines about passes over the same data: a shorter way is repeated."""


def record_start(
    run: Run, *, loaded: str | None, described: Mapping[str, object] | None, change: object
) -> None:
    """Open the record, and write how the training is started, and what is different this time.

    Args:
        run: The run.
        loaded: The checkpoint that it continues from, if one was loaded.
        described: What it is trained with, where the config does not say all of it.
        change: What was said to differ on purpose.
    """
    directory = RunDir(run.dir)
    run._internals.interventions.open(directory)
    now = run.progress.iter
    before = last_start(directory) if now else None
    start = _describe_start(run, loaded, described)
    run._internals.interventions.add("start", now, **start)
    said = [one for one in run._internals.changes if (one["how"], one["iter"]) == ("resumed", now)]
    for one in said if change and loaded else ():
        run._internals.interventions.add("change", now, **_without_iter(one))
    named = {one["key"] for one in said}
    for path, old, new in _differences(before, start):
        if path not in named:
            values = {"key": path, "old": written(old), "new": written(new), "how": "started"}
            run._internals.interventions.add("change", now, **values)
    for stream in run.train_data.parts() if run.train_data is not None else ():
        passes = _Passes(run, stream)
        stream.when_begun(passes.note)
        run._internals.interventions.before_close(passes.end)


def _describe_start(
    run: Run, loaded: str | None, described: Mapping[str, object] | None
) -> dict[str, object]:
    progress = run.progress
    return {
        "epoch": progress.epoch,
        "checkpoint": path_from(run.dir, loaded) if loaded is not None else None,
        "limits": {"max_iters": progress.max_iters, "max_epochs": progress.max_epochs},
        "config": plain(run.config) or None,
        "trained_with": described or None,
        "arguments": run._internals.arguments,
        # A replay does without a fault that was planted on purpose: it has to find it.
        "takes_part": [
            hook.name for hook in run.hooks if hook.takes_part_in_training and not _is_fault(hook)
        ],
        **(
            {"planted": planted}
            if (planted := [*map(_fault, filter(_is_fault, run.hooks))])
            else {}
        ),
        "versions": {"hookloop": VERSION, "python": platform.python_version()},
        "ranks": run.world.size,
        **describe_torch(run.device),
        "variables": variables(os.environ),
    }


def _differences(
    before: Mapping[str, object] | None, start: Mapping[str, object]
) -> list[Difference]:
    """Return what has changed since the last start, under the names that a user knows."""
    if before is None:
        return []
    # A config says what the arguments are; a script has those beside its description.
    trees = ("limits", "config", "trained_with", "arguments")
    found: dict[str, Difference] = {}
    for tree in trees:
        old, new = before.get(tree), plain(start[tree])
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            for one in differences(moved(old), new, is_equal=eq):
                if one.path.partition(".")[0] not in NOT_COMPARED:
                    found.setdefault(one.path, one)
    return list(found.values())


def _is_fault(hook: Hook) -> bool:
    return bool(getattr(hook, "plants_fault", False))


def _fault(hook: Hook) -> str:
    return str(getattr(hook, "fault", hook.name))


def _without_iter(change: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in change.items() if name != "iter"}


class _Passes:
    """Records from which states of the generators the orders of passes over some data are drawn.

    Args:
        run: The run.
        stream: The data.
    """

    def __init__(self, run: Run, stream: Stream) -> None:
        self._run = run
        self._stream = stream
        self._last: int | None = None
        self._short: list[list[int]] = []
        self._written: dict[str, bytes] = {}

    def note(self) -> None:
        """Record the pass that begins now."""
        stream = self._stream
        run, now = self._run, self._run.progress.iter
        began = stream.at.began
        if began is None:
            return
        if self._last is not None and 0 <= now - self._last < BETWEEN_PASSES:
            if draws_one_seed(stream.data):
                self._short.append([stream.passes, now, *first_seeds(began)])
            return
        known = stream.current.reader.draws_from
        names = names_of_origin(stream.data, stream.generators(), known)
        states = dict(states_of(began, names))
        digests = {name: hashlib.blake2b(one).digest() for name, one in states.items()}
        same = [name for name, one in digests.items() if self._written.get(name) == one]
        moved = [name for name in states if name not in same]
        kept: dict[str, str] = {}
        for name in moved:
            state = packed(states[name])
            if sum(map(len, kept.values())) + len(state) <= LONGEST:
                kept[name] = state
        self._written |= {name: digests[name] for name in kept}
        self._last = now
        short, self._short = self._short, []
        left_out = [name for name in moved if name not in kept]
        more = {"same": same, "left_out": left_out, "short": short}
        run._internals.interventions.add(
            "pass",
            now,
            data=stream.name,
            number=stream.passes,
            drawn_from=kept,
            **{name: names for name, names in more.items() if names},
        )

    def end(self) -> None:
        """Record the short passes since the last line."""
        if short := self._short:
            self._short = []
            self._run._internals.interventions.add(
                "pass", self._run.progress.iter, data=self._stream.name, short=short
            )


def record_end(run: Run) -> None:
    """Write how the training ended, and close the record."""
    outcome = run.outcome
    run._internals.interventions.add(
        "end",
        run.progress.iter,
        epoch=run.progress.epoch,
        status=outcome.status,
        reason=outcome.reason,
    )
    run._internals.interventions.close()
