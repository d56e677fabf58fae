"""Where a run begins: a new directory, a run to continue, weights to start from."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hookloop.checkpoint.choose import load_newest
from hookloop.checkpoint.state.pretrained import Pretrained
from hookloop.checkpoint.store.ancestry import load_parent, note_parent, path_from
from hookloop.checkpoint.store.storage import is_checkpoint_directory, is_same_location, is_url
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.engine.progress import Progress
from hookloop.errors import CheckpointError, HookloopError, LinkError, nearest
from hookloop.runs.checkpoint_names import is_checkpoint_name
from hookloop.runs.files import reject_link
from hookloop.runs.identity import (
    Identity,
    Parent,
    as_id,
    is_foreign,
    new_id,
    read_identity,
    write_identity,
)
from hookloop.runs.layout import TIME, RunDir
from hookloop.runs.lineage import past_of
from hookloop.runs.lock import RunLock
from hookloop.trainer.intended_changes import Resume

_log = logging.getLogger("hookloop")

AUTO = "auto"
"""The value of ``resume`` that continues a run if there is one, and starts it if there is none."""


class Start:
    """Decides, from what the user gave, which directory is used and what is loaded.

    Args:
        run_dir: The directory; None for a new one under ``runs/``.
        resume: True for the run in ``run_dir``, which must exist; ``"auto"`` to start it if it
            does not; a run directory or a checkpoint file to continue, which may be a URL; a
            `Resume` with one of these and with what differs on purpose.
        load_from: A checkpoint of which only the weights are taken.
    """

    def __init__(
        self,
        run_dir: str | Path | None = None,
        resume: Resume | bool | str | Path | None = None,
        load_from: Pretrained | str | Path | None = None,
    ) -> None:
        resume, self.change = Resume.parse(resume)
        if isinstance(load_from, str | Path):
            load_from = Pretrained(load_from)
        self.weights = load_from
        self.loaded: str | None = None
        """The checkpoint that the run continues from, once it is loaded."""
        self.identity = Identity()
        """Who the run is, as far as that is decided; see `identify`."""
        self.is_from_other = False
        """Whether what was loaded is the checkpoint of another run."""
        self._dir = Path(run_dir) if run_dir is not None else None
        self._resume: str | None = None
        self._continues = False
        self._is_noted = False  # Whether the identity was written by itself.
        self._lock: RunLock | None = None
        self._config: Mapping[str, object] = {}  # Written again if the directory is deleted.
        self._described: Mapping[str, object] | None = None  # So is this.
        if resume:
            self._resume = _run_to_continue(self._dir, resume)
        if self._resume is not None and not is_url(self._resume):
            path = Path(self._resume)
            # A single checkpoint continues the run in whose directory it is, unless another one is
            # given.
            home = path.parent if _is_checkpoint(path) else path
            self._dir = self._dir or home
            self._continues = self._dir == home
        # The checkpoint may be in a store elsewhere while its run is in this directory.
        if self._resume is not None and self._dir is not None and not self._continues:
            self._continues = _may_continue(self._dir, self._resume)
        wanted = str(self.weights.path) if self.weights is not None else ""
        if wanted and not is_url(wanted) and not _is_checkpoint(Path(wanted)):
            raise CheckpointError(
                f"load_from: there is no checkpoint '{wanted}'.", argument="load_from"
            )

    @property
    def is_given(self) -> bool:
        """Whether the user chose the directory."""
        return self._dir is not None

    @property
    def is_open(self) -> bool:
        """Whether a training has opened the directory, on this rank."""
        return self._lock is not None

    @property
    def is_resuming(self) -> bool:
        """Whether there is a run to continue that is not loaded yet."""
        return self._resume is not None

    def ended(self, limits: Progress) -> dict[str, object] | None:
        """Return the summary of the run to continue, if nothing is left of it to train.

        Args:
            limits: How far it is to be trained.
        """
        if self._dir is None or self._resume != str(self._dir):  # A checkpoint was chosen.
            return None
        try:
            summary = RunDir(self._dir).read_summary()
            done = replace(limits, iter=summary["iter"], epoch=summary["epoch"])  # type: ignore[arg-type]
            is_over = summary["status"] == "completed" and not summary["problem"] and done.is_done
        except (OSError, ValueError, TypeError, KeyError):  # Then it is loaded and continued.
            return None
        # A summary alone is not enough: without the last checkpoint there are no weights to load,
        # and the run has to be trained again.
        saved = CheckpointStore(self._dir).index.entries.values()
        last = [entry.name for entry in saved if entry.is_resumable and entry.iter == done.iter]
        is_saved = any(_is_checkpoint(self._dir / name) for name in last)
        return summary if is_over and is_saved else None

    def adopt(self) -> None:
        """Use the directory even if it holds a run already, whose files are overwritten."""
        self._continues = self._dir is not None

    def open(self, config: Mapping[str, object], *, trains: bool = True) -> Path:
        """Find or create the directory, and return its path.

        A training locks it until `leave`, removes leftovers in it and writes the config.
        """
        try:
            is_new = not self._continues or self._dir is None
            directory = RunDir.create(self._dir) if is_new else RunDir.open(self._dir or "")
            # All are appended to. In a directory that was copied or unpacked, a link in their
            # place could lead to any file.
            for file in (
                directory.log_file, directory.metrics_file, directory.interventions_file,
                directory.fingerprints_file,
            ):  # fmt: skip
                reject_link(file)
            if trains:
                # Before anything is written: a process that was started twice must not touch the
                # files of the first.
                self._lock = RunLock(directory.path)
                self._lock.take()
            if trains and is_new and self._resume is not None:
                # Before the config, with which the directory looks like a run: one that is killed
                # from now on must not begin at 0 in silence.
                parent = Parent(path_from(directory.path, self._resume))
                write_identity(directory, Identity(None, parent))
            if is_new and config:
                directory.write_config(config)
            known = read_identity(directory)
            self.identity = known if known != Identity() else self.identity
        except LinkError:
            self.leave()
            raise
        except OSError as error:
            self.leave()
            raise CheckpointError(f"The run's directory cannot be used: {error}") from error
        # Half-written files are deleted under the lock only. Without it they may belong to a
        # training in another process.
        if trains:
            CheckpointStore(directory.path).clean()
        # The next call of the same Trainer continues in this directory and must not claim a new
        # one.
        self._dir, self._continues = directory.path, True
        return directory.path

    def join(self, directory: Path) -> None:
        """Use the directory that another rank has opened; it holds the lock for all ranks."""
        self._dir, self._continues = directory, True

    def identify(
        self,
        found: tuple[str, Mapping[str, object]] | None,
        stores: Sequence[str],
        *,
        trains: bool,
    ) -> Identity:
        """Decide which run this is, once it is loaded; a training notes it in the directory.

        Args:
            found: The checkpoint that it continues, and where that is from.
            stores: Directories and URLs besides its own in which it keeps checkpoints.
            trains: Whether it is trained; only then a run gets an id.
        """
        if self._dir is None:
            return self.identity
        known = read_identity(RunDir(self._dir))
        run_id = known.run_id or self.identity.run_id
        parent = known.parent if known.parent is not None else self.identity.parent
        if found is not None:
            label, checkpoint = found
            place = label.rpartition("/")[0]
            own = any(is_same_location(one, place) for one in (str(self._dir), *stores))
            self.is_from_other = not own
            if own:
                run_id = run_id or self._id_in(place, checkpoint)
            elif RunDir(self._dir).parent_folder != Path(place):  # Otherwise it is noted.
                parent = note_parent(self._dir, label, checkpoint, self.change)
        if parent is not None and parent.iter is None:
            parent = None  # There was nothing to continue.
        self.identity = Identity(run_id or (new_id() if trains else None), parent)
        if trains and parent is not None and (missing := past_of(RunDir(self._dir)).missing):
            _log.warning("Of the past of '%s', %s. The training continues.", self._dir, missing)
        # Otherwise its own index and `WriteMetrics` note it with what they write.
        self._is_noted = trains and (bool(stores) or parent is not None)
        if self._is_noted:
            write_identity(RunDir(self._dir), self.identity)
        return self.identity

    def _id_in(self, place: str, checkpoint: Mapping[str, object]) -> str | None:
        """Return the id of a run whose directory has lost it: that of its checkpoints."""
        owner = CheckpointStore(place).index.read_owner()
        if owner is None:
            return as_id(checkpoint.get("run_id"))
        return None if is_foreign(owner, self._dir or "", None) else owner.run_id

    def forget_checkpoint(self) -> None:
        """Continue what was trained from now on: the checkpoint of the start was loaded."""
        self._resume = None

    def restore(self) -> bool:
        """Create the directory again if it was deleted; return whether it was."""
        if self._dir is None or self._lock is None or not self._lock.is_lost():
            return False
        self._lock.give_back()
        try:
            RunDir.open(self._dir)
            self._lock.take()
            self.keep_config(self._config, self._described)
            if self._is_noted:
                write_identity(RunDir(self._dir), self.identity)
        except (OSError, HookloopError) as error:
            _log.warning("'%s' cannot be restored: %s", self._dir, error)
        _log.warning(  # Only now: the log is in that directory, too.
            "Files in '%s' were deleted while it is trained in: the run continues there. What it "
            "saves from now on is kept, what was deleted is lost.",
            self._dir,
        )
        return True

    def leave(self) -> None:
        """Unlock the directory for other processes."""
        if self._lock is not None:
            # The lock is on the deleted file, which nobody else can see. A new file needs a new
            # lock.
            self._lock.give_back()

    def keep_config(
        self, config: Mapping[str, object], described: Mapping[str, object] | None = None
    ) -> None:
        """Write the config that the run continues with, which the next resume needs.

        Args:
            config: The config.
            described: What the run is trained with, where the config does not say all of it.
        """
        self._config, self._described = config, described
        if self._dir is None or self._lock is None:
            return
        if config:
            RunDir(self._dir).write_config(config)
        if described:
            RunDir(self._dir).write_described(described)

    def take_checkpoint(
        self, stores: Sequence[str] = (), *, whole: bool = True
    ) -> tuple[str, dict[str, object]] | None:
        """Load the checkpoint to continue from, once; later calls continue what was trained.

        Args:
            stores: Directories and URLs besides the run's own in which it keeps checkpoints.
            whole: Whether to read the tensors of a directory of shards.
        """
        path, self._resume = self._resume, None
        if path is None:
            return None
        place, _, name = path.rstrip("/").rpartition("/")
        # A URL is judged by its name, because looking would have to open the store.
        if _is_checkpoint(Path(path)) or (is_url(path) and is_checkpoint_name(name)):
            return path, CheckpointStore(place or ".").load(name, whole=whole)
        found = load_newest(path, stores, whole=whole)
        # A local run without a checkpoint was seen to exist, so it was killed early. A URL may be
        # mistyped.
        if found is None and is_url(path):
            raise CheckpointError(f"resume: there is no checkpoint in '{path}'.")
        known = read_identity(RunDir(Path(path))) if found is None else Identity()
        if (parent := known.parent) is not None:
            found = load_parent(Path(path), parent, stores, whole=whole)
            # What was meant when it began is meant now.
            self.change = tuple(dict.fromkeys((*self.change, *parent.changed)))
            if known.run_id is not None:  # Otherwise nothing was done before.
                _log.warning(
                    "'%s' has no checkpoint yet: it begins again with '%s'.", path, found[0]
                )
        if found is None:
            _log.warning("'%s' has no checkpoint yet: the run starts from the beginning.", path)
        return found


def _is_checkpoint(path: Path) -> bool:
    """Return whether a path is one checkpoint, a file or a directory of shards, and not a run."""
    return path.is_file() or is_checkpoint_directory(path)


def _keeps_in(run_dir: Path, checkpoint: str) -> bool:
    """Return whether a run's directory claims the checkpoint that the user named as its own."""
    pointer = RunDir(run_dir).last_pointer
    if pointer is None or pointer.location is None:
        return False
    given = (checkpoint, checkpoint.rpartition("/")[0])
    return any(is_same_location(place, pointer.location) for place in given)


def _may_continue(run_dir: Path, checkpoint: str) -> bool:
    """Return whether a run's directory continues with a checkpoint that the user named.

    It does if it claims the checkpoint as its own; and if it has none, as the run was cut before
    its first save: what it began with may be elsewhere now.
    """
    if _keeps_in(run_dir, checkpoint):
        return True
    run = RunDir(run_dir)
    return read_identity(run).parent is not None and not run.has_checkpoints()


def _run_to_continue(directory: Path | None, resume: bool | str | Path) -> str | None:
    """Return the run or checkpoint to continue; None if ``"auto"`` finds nothing to continue.

    Raises:
        CheckpointError: If there is nothing to continue. A mistyped path must not start a new run.
    """
    if not isinstance(resume, bool) and resume != AUTO:
        if not is_url(resume) and not _is_checkpoint(Path(resume)):
            _check_holds_run(Path(resume), "resume")
        return str(resume)
    # Such a directory is new at every start, so a second start would never find the run of the
    # first.
    if directory is None or TIME in directory.name:
        wanted = "the run to continue" if resume is True else "a directory with a fixed name"
        raise CheckpointError(f"resume={resume!r} needs run_dir=, {wanted}.", argument="resume")
    if resume == AUTO:
        return str(directory) if RunDir(directory).can_be_continued() else None
    _check_holds_run(directory, "run_dir")
    return str(directory)


def _check_holds_run(path: Path, argument: str) -> None:
    if RunDir(path).can_be_continued():
        return
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    names = [run.name for run in beside if run != path and RunDir(run).can_be_continued()]
    what = "holds no run to resume" if path.exists() else "does not exist: there is no run there"
    raise CheckpointError(
        f"{argument}: '{path}' {what}.{nearest(path.name, names)} To start the run if it does not "
        "exist, and continue it if it does, write resume='auto'.",
        argument=argument,
    )
