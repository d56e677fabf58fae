"""Going back within a run: an earlier checkpoint is restored, and the training continues from it.

What happens is what a resume does, in the same process. Only the data that is left out, and the
record of the rewind, are not those of the checkpoint.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from hookloop.checkpoint.saving.request import Save
from hookloop.checkpoint.store.index import Saved
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.data.position.skipped import add_skipped
from hookloop.engine.loop import Loop
from hookloop.errors import CheckpointError, DataError
from hookloop.every import count_of
from hookloop.requests import Requests, Rewind
from hookloop.runs.checkpoint_names import checkpoint_name
from hookloop.trainer.several_ranks import Found, load_on_all_ranks
from hookloop.trainer.state.run_state import RunState

Restore = Callable[[str, dict[str, object]], None]
"""Restores a checkpoint, given where it is from."""

OWNER = "rewind"
"""Who owns the checkpoint that is made after going back."""

_log = logging.getLogger("hookloop")


class Rewinder:
    """Goes back to an earlier checkpoint of a run.

    Args:
        loop: The loop that continues from there.
        state: What the run consists of.
        restore: Restores a checkpoint to the run.
    """

    def __init__(self, loop: Loop, state: RunState, restore: Restore) -> None:
        self._loop = loop
        self._run = loop.run
        self._state = state
        self._restore = restore

    def __call__(self, rewind: Rewind) -> Rewind:
        """Go back; return the request, with the iteration that was reached."""
        run = self._run
        _check_data(self._loop)
        self._give_up_requests()
        self._loop.close_checkpoints()  # Then the newest checkpoints are durable, and listed.
        found = load_on_all_ranks(self._loop.run, lambda whole: self._find(rewind, whole))
        assert found is not None  # Otherwise the first rank has failed.
        label, checkpoint = found
        iteration, before, skipped_iters = (
            run.progress.iter,
            run._internals.changes,
            run.progress.skipped_iters,
        )
        self._state.reset()
        self._restore(label, checkpoint)
        done = run.progress
        # Data from before the checkpoint is not read again.
        left = tuple(i for i in rewind.skip if i > done.iter)
        rewind = replace(rewind, to=done.iter, skip=left)
        skipped = add_skipped(done.skipped_iters, skipped_iters, rewind.skip)
        done.skipped_iters = tuple(one for one in skipped if one not in rewind.read_again)
        self._record(before, rewind, iteration, label)
        # A process that is killed from now on continues on the new branch.
        name = checkpoint_name("rewound_iter", done.iter)
        run.save(Save(name, owner=OWNER, keep=1), everywhere=True)
        return rewind

    def _give_up_requests(self) -> None:
        """Drop what was requested for the state that is given up."""
        run = self._run
        for save in (*run._internals.requests.saves, *run._internals.wishes.saves):
            if save.on_lost is not None:
                save.on_lost()
        (
            run._internals.requests.saves,
            run._internals.requests.validate,
            run._internals.requests.planned,
        ) = [], False, False
        run._internals.wishes = Requests()

    def _find(self, rewind: Rewind, whole: bool) -> Found:
        """Load the newest checkpoint that is old enough; damaged ones are skipped."""
        run = self._run
        stores = [str(run.dir), *run.stores]
        saved = current_branch([one for place in dict.fromkeys(stores) for one in _listed(place)])
        problems = []
        for entry in saved:
            if entry.iter <= rewind.to:
                try:
                    loaded = CheckpointStore(entry.location).load(entry.name, whole=whole)
                except CheckpointError as error:
                    problems.append(str(error))
                    continue
                if problems:
                    _log.warning("%s Going back to '%s' instead.", " ".join(problems), entry.name)
                return f"{entry.location}/{entry.name}", loaded
        raise CheckpointError(
            f"The run cannot go back to iteration {rewind.to} or before: there is no checkpoint "
            f"from then. {' '.join(problems)} Save more often, or keep more of them, with "
            "SaveCheckpoint(every=..., keep=...)."
        )

    def _record(
        self, before: Sequence[dict[str, object]], rewind: Rewind, iteration: int, label: str
    ) -> None:
        run = self._run
        undone = []
        for change in before:
            if change in run._internals.changes:
                continue
            if change["how"] == "rewound":
                run._internals.changes.append(change)
            else:
                undone.append(str(change["key"]))
        values = {"old": iteration, "new": run.progress.iter, "how": "rewound"}
        run._internals.changes.append({"iter": run.progress.iter, "key": "iter", **values})
        branch = sum(change["how"] == "rewound" for change in run._internals.changes)
        left = {"from": iteration, "skip": list(rewind.skip), "reason": rewind.reason}
        left["left_out"] = list(run.progress.skipped_iters)
        run._internals.interventions.add("rewind", run.progress.iter, **left, branch=branch)
        if not run.world.is_main:  # Every rank goes back; one of them says so.
            return
        why = f" ({rewind.reason})" if rewind.reason else ""
        lost = f"; the batches of {count_of(len(rewind.skip), 'iteration')} are left out"
        _log.warning(
            "The run went back from iteration %d to '%s'%s%s.",
            iteration,
            label,
            why,
            lost if rewind.skip else "",
        )
        if undone:
            _log.warning("Going back has undone what was changed since: %s.", ", ".join(undone))


def current_branch(saved: Sequence[Saved]) -> list[Saved]:
    """Return the checkpoints that lead to the present one, the newest first.

    A run that went back has older ones of later iterations, from a branch that it has left.
    """
    branch: list[Saved] = []
    for entry in sorted(saved, key=lambda one: one.time, reverse=True):
        if not branch or entry.iter <= branch[-1].iter:
            branch.append(entry)
    return branch


def _listed(place: str) -> list[Saved]:
    store = CheckpointStore(place)
    entries = store.index.entries.values()
    return [replace(one, location=store.location) for one in entries if one.is_resumable]


def _check_data(loop: Loop) -> None:
    source = loop.run.train_data
    if source is not None and source.is_one_pass:
        raise DataError(f"{source.name} can be read only once, so the run cannot go back in it.")
