"""How a checkpoint is made: collected, shown to hooks, copied in memory, written in a thread.

Training waits only for the copy in memory. The loop tells hooks between two iterations which
checkpoints have become durable.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hookloop.checkpoint.saving.background import BackgroundSaver, Job
from hookloop.checkpoint.saving.request import Save
from hookloop.checkpoint.saving.retention import Keep
from hookloop.checkpoint.saving.snapshot import Snapshot
from hookloop.checkpoint.search import is_same_location
from hookloop.checkpoint.shards.writing import stage
from hookloop.checkpoint.store.index import Saved
from hookloop.checkpoint.store.pointer import LastPointer
from hookloop.checkpoint.store.storage import is_url
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.engine.plan import fire
from hookloop.errors import CheckpointError
from hookloop.runs.checkpoint_names import directory_name
from hookloop.runs.identity import Owner
from hookloop.trainer.state.parts import current_metrics
from hookloop.trainer.state.run_state import RunState, State

if TYPE_CHECKING:
    from hookloop.engine.run import Run
    from hookloop.requests import Requests

LONGEST_QUESTION = 10.0
"""Seconds that the start of a training waits for a remote store to say whose it is."""

_log = logging.getLogger("hookloop")


class CheckpointSaver:
    """Makes the checkpoints of a run.

    Args:
        state: The state of the run.
        restore: Creates the run's directory again if it was deleted, and returns whether it was.

    Attributes:
        pointer: Names the newest checkpoint in the run's directory.
    """

    def __init__(self, state: RunState, restore: Callable[[], bool] = lambda: False) -> None:
        self.is_sharded = False  # Whether each rank writes its part of the model.
        self.pointer = LastPointer()
        self.state = state
        self._restore = restore
        self._snapshot = Snapshot()
        self._stores: dict[str, CheckpointStore] = {}
        self._requests: Requests | None = None
        self._is_alone = True
        self._current = Current()
        self._held: list[Saved] = []
        self._validations: dict[tuple[str, int], dict[str, float]] = {}
        self._background = BackgroundSaver(self._announce)

    @property
    def problem(self) -> str | None:
        """Why the newest checkpoint could not be saved, or None."""
        return self._background.problem

    def claim(self, run: Run) -> None:
        """Note in the stores outside of the run's directory that they are this run's.

        Raises:
            CheckpointError: If one belongs to another run.
        """
        if not run.world.is_main or run.id is None:
            return
        own = self._store(str(run.dir))
        own.index.owner = Owner(run.id)
        for place in dict.fromkeys(place for hook in run.hooks for place in hook.stores(run.dir)):
            store = self._store(place)
            # Others, such as a folder that a foreign hook is given, may be shared by runs.
            if store is not own and place.rstrip("/").endswith(f"/{Path(run.dir).name}"):
                where = None if is_url(place) else _key(place)
                owner = Owner(run.id, str(Path(run.dir).absolute()), where)
                is_new = run.progress.iter == 0 or run.is_from_other
                _ask(partial(store.claim, owner, is_new=is_new), place)

    def save(self, run: Run, saves: Sequence[Save]) -> None:
        """Copy the current state, once, and start writing it; or keep a file that has it."""
        if run.ranks.is_broken:
            saves = [one for save in saves for one in _without_peers(save)]
        if self.is_sharded and saves and not run.ranks.is_broken:
            self._save_shards(run, saves)
            return
        if not run.world.is_main:  # Every rank has the same state; the first writes it.
            if saves and not run.ranks.is_broken:
                self._gather(run)
            return
        if saves:
            self._restore()
        # Each call of the Trainer makes new requests, and the writing thread needs the current
        # ones.
        self._requests, self._is_alone = run.requests, run.world.is_alone
        # Copied at most once, and only if some save needs it: promoting a file does not.
        taken: dict[str, object] | None = None
        if saves and not run.world.is_alone:
            taken = self._take(run)  # At once, because the other ranks take part in it.
        asked: set[tuple[object, ...]] = set()
        for save in saves:
            store = self._store(save.location or str(run.dir))
            file = (store.location, save.name, save.leave_out)
            # Two hooks may request the same file; it is written once and belongs to both.
            of = save.name if file in asked else self._source(run, store, save)
            asked.add(file)
            saved = self._describe(run, save, store.location)
            current = self._current.at(run.progress.iter)
            if save not in current.saves:
                current.saves.append(save)
            if of is not None:
                self._submit(run, save, saved, _promoting(store, of, saved), of)
                continue
            taken = taken or self._take(run)
            parts = {key: part for key, part in taken.items() if key not in save.leave_out}
            self._submit(run, save, saved, _writing(store, parts, saved, self._snapshot.nbytes))

    def _save_shards(self, run: Run, saves: Sequence[Save]) -> None:
        """Copy the parts of this rank, and start writing them; all ranks do it together."""
        self._requests, self._is_alone = run.requests, False
        saves = [in_directory(save) for save in saves]
        stores = [self._store(save.location or str(run.dir)) for save in saves]
        # Only the first rank knows which checkpoints are there, to be kept under another name.
        sources = [self._source(run, *pair) for pair in zip(stores, saves, strict=True)]
        sources = run.ranks.share(sources)
        taken = self._take(run) if None in sources else {}
        for store, save, of in zip(stores, saves, sources, strict=True):
            saved = self._describe(run, save, store.location)
            if of is None:
                parts = {key: part for key, part in taken.items() if key not in save.leave_out}
                staged = stage(parts, run.ranks.group, {"strategy": "sharded"})
                self._submit(run, save, saved, partial(store.write_shards, staged, saved))
            elif run.world.is_main:
                self._submit(run, save, saved, _promoting(store, of, saved), of)

    def announce(self, run: Run) -> None:
        """Put what has become durable among the wishes of this rank, for the other ranks."""
        if not run.world.is_alone and (finished := self._background.take_finished()):
            run.wishes.news += finished
            run.wishes.any = True

    def report(self, run: Run) -> None:
        """Tell hooks what has become durable, with the metrics of its own iteration."""
        new, run.requests.news = run.requests.news, []
        if run.world.is_alone:
            new = self._background.take_finished()
        news, self._held = [*self._held, *new], []
        # The validation of this iteration comes next; its checkpoints are reported with it.
        if run.requests.validate and not run.is_interrupted:
            self._held = [saved for saved in news if saved.iter == run.progress.iter]
        self._tell(run, [saved for saved in news if saved not in self._held])

    def amend(self, run: Run, metrics: Mapping[str, float]) -> None:
        """Add the results of the validation to the checkpoints of its iteration."""
        current, iteration = self._current.at(run.progress.iter), run.progress.iter
        # Also what hooks put meanwhile, and other streams that were validated before.
        current.validation = {**current.validation, **current_metrics(run), **metrics}
        # In the background too, and only after the file itself: the entry to amend has to exist.
        for store, name in current.files:
            self._validations[store.location, iteration] = current.validation
            if not run.world.is_main:  # All ranks write their shards, the first writes the index.
                continue
            work = partial(store.amend, name, iteration, current.validation)
            label = f"{store.location}/{name}"
            self._background.submit(Job(f"{label} (metrics)", store.location, work, needs=label))
        # They were held back for these results. The loop has to call `report` once more.
        if self._held:
            run.requests.any = True

    def resumed(self, run: Run, label: str) -> None:
        """Note the checkpoint that the run continues from; a validation that is due amends it."""
        place, _, name = label.rpartition("/")
        stores = [store for hook in run.hooks for store in hook.stores(run.dir)]
        # A checkpoint of another run is only read: its index is not ours to change.
        is_own = any(is_same_location(own, place) for own in (str(run.dir), *stores))
        if run.world.is_main and is_own:
            store = self._store(place)
            store.index.load()  # Now: later the training would wait for a remote store.
            self._current.at(run.progress.iter).files.append((store, name))

    def close(self, run: Run) -> None:
        """Wait until everything that can be saved is durable."""
        self._background.close()
        if self._restore() and self._current.iter == run.progress.iter:
            self.save(run, self._current.saves)  # They were deleted after they were written.
            self._background.close()
        finished = self._background.take_finished()
        if not run.ranks.is_broken:
            finished = run.ranks.share(finished)
        self._tell(run, [*self._held, *finished])
        self._held, self._current, self._validations = [], Current(), {}

    def _tell(self, run: Run, news: Sequence[Saved]) -> None:
        for saved in news:
            validation = self._validations.get((saved.location, saved.iter))
            for place, iteration in list(self._validations):
                # A store writes in order, so older ones will not be reported any more.
                if place == saved.location and iteration < saved.iter:
                    del self._validations[place, iteration]
            known = saved if validation is None else saved.with_validation(validation)
            fire(run.plan.after_save_checkpoint, run, known)

    def _store(self, place: str) -> CheckpointStore:
        """Return the store of a directory or URL, the same for every spelling of its path."""
        # One store per location, because the index is kept in memory: a second one would not see
        # the first one's entries and would overwrite them.
        key = _key(place)
        if key not in self._stores:
            self._stores[key] = CheckpointStore(place)
        return self._stores[key]

    def _describe(self, run: Run, save: Save, place: str) -> Saved:
        current = self._current.at(run.progress.iter)
        return Saved(
            save.name,
            place,
            run.progress.iter,
            run.progress.epoch,
            kind=save.kind,
            owners=(save.owner,),
            forever=save.forever,
            rule=save.rule,
            left_out=save.leave_out,
            metrics={**current_metrics(run), **current.validation, **save.metrics},
            validated=bool(current.validation),
        )

    def _source(self, run: Run, store: CheckpointStore, save: Save) -> str | None:
        """Return the file to keep under another name, if it exists or is being written."""
        if save.of is None:
            return None
        # A file that is still being written is not in the index yet, but jobs of a store run in
        # order.
        is_coming = self._background.has_job(f"{store.location}/{save.of}")
        return save.of if is_coming or store.holds(save.of, run.progress.iter) else None

    def _take(self, run: Run) -> dict[str, object]:
        """Copy the state in memory."""
        if not self._background.wait_until_free(self._snapshot):
            self._snapshot = Snapshot()  # A slow store is still reading the other one.
        return self._snapshot.take(self._gather(run))

    def _gather(self, run: Run) -> State:
        """Collect the state and show it to hooks, on every rank."""
        checkpoint = self.state.gather()
        # Before the copy, so that what hooks add is copied as well.
        fire(run.plan.before_save_checkpoint, run, checkpoint)
        return checkpoint

    def _submit(
        self,
        run: Run,
        save: Save,
        saved: Saved,
        work: Callable[[], Saved | None],
        of: str | None = None,
    ) -> None:
        store, directory = self._store(saved.location), Path(run.dir)
        is_main, order = run.world.is_main, self.pointer.next_order()
        # A resume continues from the newest state, not from the best one.
        marks_last = save.kind in ("periodic", "other") and saved.is_resumable
        if save.marks_last is not None:
            marks_last = save.marks_last
        done: list[Saved | None] = []

        def durable() -> Saved | None:
            if not done:  # Otherwise an earlier attempt got that far.
                if is_main:
                    store.confirm()
                done.append(work())
            if not is_main:  # It has written its part; the first rank does the rest.
                return None
            if marks_last:
                self.pointer.mark(order, store, save.name, directory)
            # After marking: the pointer must never name a file that has been deleted.
            store.prune(Keep(save.owner, save.kind, save.keep))
            return done[0]

        needs = f"{store.location}/{of}" if of else None
        label = f"{store.location}/{save.name}"
        self._current.at(saved.iter).files.append((store, save.name))
        self._background.submit(
            Job(
                label,
                store.location,
                durable,
                memory=self._snapshot if of is None else None,  # A promotion reads the file.
                nbytes=self._snapshot.nbytes,
                max_wait=save.max_wait,
                needs=needs,
                on_lost=save.on_lost,
            )
        )

    def _announce(self) -> None:
        # This runs in the writing thread. It sets a flag, so that hooks are called by the loop, in
        # the thread that trains.
        if self._requests is not None and self._is_alone:
            self._requests.any = True  # On many ranks `announce` finds it at the next meeting.


def _without_peers(save: Save) -> list[Save]:
    """Return what to save of a request when the other ranks are gone.

    Their random numbers and buffers are missing, so that no resume from it would be exact. A hook
    that asks for a file when a run fails still gets it, as one that is never resumed from.
    """
    return [] if save.kind in ("periodic", "best") else [replace(save, kind="exception")]


def in_directory(save: Save) -> Save:
    """Return a request for a directory of shards instead of one for a file."""
    of = directory_name(save.of) if save.of is not None else None
    return replace(save, name=directory_name(save.name), of=of)


@dataclass
class Current:
    """What is known of the newest iteration that was saved or validated.

    Attributes:
        iter: The iteration.
        saves: The saves requested in it.
        files: Its checkpoints, saved or about to be, each with its store.
        validation: The results of its validation, by their full names; empty before it.
    """

    iter: int = -1
    saves: list[Save] = field(default_factory=list)
    files: list[tuple[CheckpointStore, str]] = field(default_factory=list)
    validation: dict[str, float] = field(default_factory=dict)

    def at(self, iteration: int) -> Current:
        """Return this, after forgetting what belongs to another iteration."""
        if self.iter != iteration:
            self.iter, self.saves, self.files, self.validation = iteration, [], [], {}
        return self


def _writing(
    store: CheckpointStore, checkpoint: dict[str, object], saved: Saved, nbytes: int
) -> Callable[[], Saved]:
    return lambda: store.write(checkpoint, saved, nbytes)


def _promoting(store: CheckpointStore, of: str, saved: Saved) -> Callable[[], Saved]:
    return lambda: store.promote(of, saved)


def _ask(claim: Callable[[], None], place: str) -> None:
    """Claim a store; one that is away, or takes long, is asked again by each save."""
    problems: list[Exception] = []

    def work() -> None:
        try:
            claim()
        except Exception as error:  # noqa: BLE001 - no error of a store may end the thread
            problems.append(error)

    # In a daemon, because a call that hangs in a store must not keep the process alive.
    thread = threading.Thread(target=work, name="hookloop-claim", daemon=True)
    thread.start()
    thread.join(LONGEST_QUESTION)
    if problems and isinstance(problems[0], CheckpointError):
        raise problems[0]
    if problems or thread.is_alive():
        why = problems[0] if problems else "no answer"
        _log.info("Whether '%s' belongs to another run is not known yet: %s.", place, why)


def _key(place: str) -> str:
    return place if is_url(place) else str(Path(place).absolute())
