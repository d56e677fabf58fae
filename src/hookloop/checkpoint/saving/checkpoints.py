"""The owner of the checkpoints of a run: from what hooks request to what they are told.

Training waits only for the copy in memory. A thread writes it; the loop asks between two iterations
what has become durable, and tells hooks.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal, Protocol, cast

from hookloop.checkpoint.saving.request import Save
from hookloop.checkpoint.saving.retention import Keep
from hookloop.checkpoint.saving.snapshot import Snapshot
from hookloop.checkpoint.saving.writer import Task, Writer
from hookloop.checkpoint.shards.writing import Staged, stage
from hookloop.checkpoint.store.index import Saved
from hookloop.checkpoint.store.storage import is_same_location, is_url
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.errors import CheckpointError
from hookloop.parallel.ranks import Ranks
from hookloop.runs.checkpoint_names import LAST, directory_name
from hookloop.runs.files import write_text
from hookloop.runs.identity import Owner
from hookloop.secret import without_credentials


class LastPointer:
    """The ``last_checkpoint`` of a run's directory; nothing else writes it while the run lasts.

    The stores of a run write in threads of their own. One that is slower than another may be done
    with a checkpoint when a newer one is durable, which the pointer then keeps naming.

    Args:
        has_whole_paths: Whether it holds a whole path, and only that, also for a file in the run's
            directory, as tools of other systems expect.
    """

    def __init__(self, *, has_whole_paths: bool = False) -> None:
        self._has_whole_paths = has_whole_paths
        self._orders = itertools.count()
        self._newest = -1
        self._lock = threading.Lock()

    def next_order(self) -> int:
        """Return the place of a checkpoint that is requested now among all of the run."""
        return next(self._orders)

    def mark(self, order: int, store: CheckpointStore, name: str, run_dir: Path) -> None:
        """Name a durable checkpoint in its store, and in the run's directory if it is the newest.

        Args:
            order: Its place among those of the run.
            store: The store that holds it.
            name: Its name there.
            run_dir: The run's directory.
        """
        is_own = store.location == str(run_dir)
        if not is_own:
            # Outside of the lock: a store that does not answer must not delay the others.
            store.mark_last(name)
        with self._lock:
            if order < self._newest:
                return
            if is_own and not self._has_whole_paths:
                store.mark_last(name)
            else:
                run_dir.mkdir(parents=True, exist_ok=True)
                write_text(run_dir / LAST, self._path(store, name))
            self._newest = order

    def _path(self, store: CheckpointStore, name: str) -> str:
        place = str(Path(store.location).absolute())
        if is_url(store.location):
            # The pointer is a plain file that is copied and shared with the run.
            place = without_credentials(store.location)
        return f"{place}/{name}" + ("" if self._has_whole_paths else "\n")


LONGEST_QUESTION = 10.0
"""Seconds that the start of a training waits for a remote store to say whose it is."""

_log = logging.getLogger("hookloop")


class Origin(Protocol):
    """What the checkpoints are made of; the trainer has it."""

    @property
    def ranks(self) -> Ranks:
        """The connection to the other ranks."""

    @property
    def is_sharded(self) -> bool:
        """Whether each rank writes its part of the model."""

    @property
    def home(self) -> Path:
        """The run's directory, as it is now."""

    @property
    def iter(self) -> int:
        """Iterations completed now."""

    @property
    def epoch(self) -> int:
        """Epochs completed now."""

    def gather(self) -> MutableMapping[str, object]:
        """Collect the state, and show it to hooks; all ranks take part."""

    def metrics(self) -> dict[str, float]:
        """Return the metrics of this iteration."""

    def restore_home(self) -> bool:
        """Create the run's directory again if it was deleted; return whether it was."""

    def announce(self) -> None:
        """Let the loop ask for news; called in the thread that writes."""


class Checkpoints:
    """Makes the checkpoints of a run.

    Args:
        origin: What they are made of.

    Attributes:
        pointer: Names the newest checkpoint in the run's directory.
    """

    def __init__(self, origin: Origin) -> None:
        self.pointer = LastPointer()
        self._origin = origin
        self._snapshot = Snapshot()
        self._stores: dict[str, CheckpointStore] = {}
        self._current = Current()
        self._held: list[Saved] = []
        self._results: dict[tuple[str, int], dict[str, float]] = {}
        self._writer = Writer(self._carry_out, origin.announce)

    @property
    def problem(self) -> str | None:
        """Why the newest checkpoint could not be saved, or None."""
        return self._writer.problem

    def claim(self, run_id: str, places: Sequence[str], *, is_new: bool) -> None:
        """Note in the stores outside of the run's directory that they are this run's.

        Args:
            run_id: The run.
            places: The stores.
            is_new: Whether the run has saved nothing there before.

        Raises:
            CheckpointError: If one belongs to another run.
        """
        home = self._origin.home
        own = self._store(str(home))
        own.index.owner = Owner(run_id)
        for place in dict.fromkeys(places):
            store = self._store(place)
            # Others, such as a folder that a foreign hook is given, may be shared by runs.
            if store is not own and place.rstrip("/").endswith(f"/{home.name}"):
                owner = Owner(run_id, str(home.absolute()), None if is_url(place) else _key(place))
                _ask(partial(store.claim, owner, is_new=is_new), place)

    def continue_from(self, label: str, places: Sequence[str]) -> None:
        """Note the checkpoint that the run continues from; a validation that is due amends it."""
        place, _, name = label.rpartition("/")
        # A checkpoint of another run is only read: its index is not ours to change.
        is_own = any(is_same_location(own, place) for own in (str(self._origin.home), *places))
        if self._origin.ranks.world.is_main and is_own:
            store = self._store(place)
            store.index.load()  # Now: later the training would wait for a remote store.
            self._now().files.append((store, name))

    def take(self, saves: Sequence[Save]) -> None:
        """Copy the current state, once, and start writing it; or keep a file that has it."""
        origin, ranks = self._origin, self._origin.ranks
        if ranks.is_broken:
            saves = [one for save in saves for one in _without_peers(save)]
        if not saves:
            return
        if origin.is_sharded and not ranks.is_broken:
            self._take_shards(saves)
            return
        if not ranks.world.is_main:  # Every rank has the same state; the first writes it.
            if not ranks.is_broken:
                origin.gather()
            return
        origin.restore_home()
        # Copied at most once, and only if some save needs it: a second name for a file does not.
        # With other ranks at once, because they take part in it.
        taken = None if ranks.world.is_alone else self._copy()
        asked: set[tuple[object, ...]] = set()
        for save in saves:
            store = self._store(save.location or str(origin.home))
            file = (store.location, save.name, save.leave_out)
            # Two hooks may request the same file; it is written once and belongs to both.
            source = save.name if file in asked else self._source(store, save)
            asked.add(file)
            saved = self._describe(store, save)
            if save not in self._now().saves:
                self._now().saves.append(save)
            if source is None:
                taken = taken or self._copy()
                parts = {key: part for key, part in taken.items() if key not in save.leave_out}
                self._submit("write", saved, store, save, content=parts)
            else:
                self._submit("link", saved, store, save, source=source)

    def finished(self) -> list[Saved]:
        """Return what has become durable since the last call, as far as this rank knows."""
        return self._writer.take_finished()

    def to_announce(self, news: Sequence[Saved], *, is_validation_due: bool) -> list[Saved]:
        """Return what to tell hooks, with the metrics of its own iteration.

        If the validation of this iteration comes next, its checkpoints are held back for that.
        """
        news, self._held = [*self._held, *news], []
        if is_validation_due:
            self._held = [saved for saved in news if saved.iter == self._origin.iter]
        return [self._with_results(saved) for saved in news if saved not in self._held]

    def add_results(self, metrics: Mapping[str, float]) -> bool:
        """Add the results of the validation to the checkpoints of its iteration.

        Returns:
            Whether some were held back for them, so that there is something to announce.
        """
        current = self._now()
        # Also what hooks put meanwhile, and other streams that were validated before.
        current.results = {**current.results, **self._origin.metrics(), **metrics}
        for store, name in current.files:
            self._results[store.location, current.iter] = current.results
            # All ranks write their shards, the first writes the index. In the thread, and only
            # after the file itself: the entry to amend has to exist.
            if self._origin.ranks.world.is_main:
                place, done = store.location, (current.iter, self._origin.epoch)
                saved = Saved(name, place, *done, metrics=current.results)
                self._writer.submit(Task("results", saved, store))
        return bool(self._held)

    def close(self) -> list[Saved]:
        """Wait until everything that can be saved is durable; return what to tell hooks."""
        self._writer.close()
        if self._origin.restore_home() and self._current.iter == self._origin.iter:
            self.take(self._current.saves)  # They were deleted after they were written.
            self._writer.close()
        finished = self._writer.take_finished()
        if not self._origin.ranks.is_broken:
            finished = self._origin.ranks.share(finished)
        news = [self._with_results(saved) for saved in (*self._held, *finished)]
        self._held, self._current, self._results = [], Current(), {}
        return news

    def _take_shards(self, saves: Sequence[Save]) -> None:
        """Copy the parts of this rank, and start writing them; all ranks do it together."""
        ranks = self._origin.ranks
        saves = [in_directory(save) for save in saves]
        stores = [self._store(save.location or str(self._origin.home)) for save in saves]
        # Only the first rank knows which checkpoints are there, to be kept under another name.
        sources = [self._source(*pair) for pair in zip(stores, saves, strict=True)]
        sources = ranks.share(sources)
        taken = self._copy() if None in sources else {}
        for store, save, source in zip(stores, saves, sources, strict=True):
            saved = self._describe(store, save)
            if source is None:
                parts = {key: part for key, part in taken.items() if key not in save.leave_out}
                staged = stage(parts, ranks.group, {"strategy": "sharded"})
                self._submit("shards", saved, store, save, content=staged)
            elif ranks.world.is_main:
                self._submit("link", saved, store, save, source=source)

    def _copy(self) -> dict[str, object]:
        """Copy the state in memory."""
        if not self._writer.wait_until_free(self._snapshot):
            self._snapshot = Snapshot()  # A slow store is still reading the other one.
        return self._snapshot.take(self._origin.gather())

    def _source(self, store: CheckpointStore, save: Save) -> str | None:
        """Return the file to keep under another name, if it exists or is being written."""
        if save.of is None:
            return None
        # A file that is still being written is not in the index yet, but the tasks of a store are
        # done in order.
        is_coming = self._writer.has(f"{store.location}/{save.of}")
        return save.of if is_coming or store.holds(save.of, self._origin.iter) else None

    def _describe(self, store: CheckpointStore, save: Save) -> Saved:
        current = self._now()
        return Saved(
            save.name,
            store.location,
            current.iter,
            self._origin.epoch,
            kind=save.kind,
            owners=(save.owner,),
            forever=save.forever,
            rule=save.rule,
            left_out=save.leave_out,
            metrics={**self._origin.metrics(), **current.results, **save.metrics},
            validated=bool(current.results),
        )

    def _submit(
        self,
        what: Literal["write", "shards", "link"],
        saved: Saved,
        store: CheckpointStore,
        save: Save,
        *,
        content: Mapping[str, object] | Staged | None = None,
        source: str | None = None,
    ) -> None:
        # A resume continues from the newest state, not from the best one.
        marks_last = save.kind in ("periodic", "other") and saved.is_resumable
        if save.marks_last is not None:
            marks_last = save.marks_last
        order = self.pointer.next_order()
        self._now().files.append((store, save.name))
        self._writer.submit(
            Task(
                what,
                saved,
                store,
                self._origin.home,
                content=content,
                snapshot=self._snapshot if content is not None else None,
                nbytes=self._snapshot.nbytes,
                source=source,
                keep=Keep(save.owner, save.kind, save.keep),
                order=order if marks_last else None,
                max_wait=save.max_wait,
                on_lost=save.on_lost,
            )
        )

    def _carry_out(self, task: Task) -> Saved | None:
        """Do a task, in the thread of its store: file, index, `last_checkpoint`, old files."""
        saved, store = task.saved, task.store
        if task.what == "results":
            store.amend(saved.name, saved.iter, saved.metrics)
            return None
        is_main = self._origin.ranks.world.is_main
        if not task.is_written:  # Otherwise an earlier attempt got that far.
            if is_main:
                store.confirm()
            task.saved = _write(task) or saved
            task.is_written = True
        if not is_main:  # It has written its part; the first rank does the rest.
            return None
        if task.order is not None:
            self.pointer.mark(task.order, store, saved.name, task.home)
        # After marking: the pointer must never name a file that has been deleted.
        if task.keep is not None:
            store.prune(task.keep)
        return task.saved

    def _with_results(self, saved: Saved) -> Saved:
        results = self._results.get((saved.location, saved.iter))
        for place, iteration in list(self._results):
            # A store writes in order, so older ones will not be reported any more.
            if place == saved.location and iteration < saved.iter:
                del self._results[place, iteration]
        return saved if results is None else saved.with_validation(results)

    def _now(self) -> Current:
        """Return what is known of this iteration, after forgetting what belongs to another."""
        if self._current.iter != self._origin.iter:
            self._current = Current(self._origin.iter)
        return self._current

    def _store(self, place: str) -> CheckpointStore:
        """Return the store of a directory or URL, the same for every spelling of its path."""
        # One store per location, because the index is kept in memory: a second one would not see
        # the first one's entries and would overwrite them.
        key = _key(place)
        if key not in self._stores:
            self._stores[key] = CheckpointStore(place)
        return self._stores[key]


@dataclass
class Current:
    """What is known of the newest iteration that was saved or validated.

    Attributes:
        iter: The iteration.
        saves: The saves requested in it.
        files: Its checkpoints, saved or about to be, each with its store.
        results: Those of its validation, by their full names; empty before it.
    """

    iter: int = -1
    saves: list[Save] = field(default_factory=list)
    files: list[tuple[CheckpointStore, str]] = field(default_factory=list)
    results: dict[str, float] = field(default_factory=dict)


def _write(task: Task) -> Saved | None:
    """Make durable what a task is about, and list it."""
    if task.what == "link":
        return task.store.promote(cast("str", task.source), task.saved)
    if task.what == "shards":
        return task.store.write_shards(cast("Staged", task.content), task.saved)
    content = cast("Mapping[str, object]", task.content)
    return task.store.write(content, task.saved, task.nbytes)


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
    return place.rstrip("/") if is_url(place) else str(Path(place).absolute())
