"""A store of checkpoints: files written whole, listed with checksums, read without running code.

A save goes: staged file, flushed -> renamed -> index -> ``last_checkpoint`` -> old files deleted.
Whenever the process dies, the newest file that ``last_checkpoint`` names is whole.
"""

from __future__ import annotations

import errno
import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

from hookloop.checkpoint.saving.retention import Keep, expendable, spare, surplus, without_surplus
from hookloop.checkpoint.shards.manifest import verify
from hookloop.checkpoint.shards.writing import TIMEOUT, Staged
from hookloop.checkpoint.shards.writing import write as write_shards
from hookloop.checkpoint.state.shape import find_mismatch, is_count, is_mapping
from hookloop.checkpoint.store.index import Index, Saved
from hookloop.checkpoint.store.ours import is_ours
from hookloop.checkpoint.store.reading import read_checkpoint
from hookloop.checkpoint.store.storage import (
    LocalStorage,
    Storage,
    is_checkpoint_directory,
    is_url,
    open_storage,
    write_all,
)
from hookloop.checkpoint.store.writing import WrittenFile, write_checkpoint
from hookloop.errors import CheckpointError
from hookloop.runs.checkpoint_names import (
    LAST,
    form_of,
    is_checkpoint_name,
    is_of_exception,
    is_own_name,
)
from hookloop.runs.checksum import find_damage
from hookloop.runs.identity import Owner, is_alive, is_copied, is_foreign, is_same_place
from hookloop.runs.layout import LONGEST_POINTER

OTHER_PLACE = (
    "Give SaveCheckpoint another directory=, or the run's directory another name; a store is named "
    "after it."
)
"""What to do where two runs would share a store."""

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
"""Errors of a disk that has no room left."""

REQUIRED_PARTS = {"model": is_mapping, "progress": {"iter": is_count}}
"""What a file must hold to count as a checkpoint of a run."""

_log = logging.getLogger("hookloop")


class CheckpointStore:
    """The checkpoints of one directory or URL.

    Args:
        location: Directory, or URL for fsspec.
    """

    def __init__(self, location: str | Path) -> None:
        self.storage: Storage = open_storage(location)
        self.location = self.storage.url
        self.index = Index(self.storage, self.location)
        self._made: set[str] = set()  # What this object has saved, so it need not be examined.

    def claim(self, owner: Owner, *, is_new: bool = False) -> None:
        """Note that the store belongs to a run; reject one that belongs to another run.

        Args:
            owner: The run, and where the store is.
            is_new: Whether the run has saved nothing so far, so that no checkpoint is its own.

        Raises:
            CheckpointError: If the two would delete each other's checkpoints.
        """
        home = owner.run_dir or ""
        self.index.owner = owner
        if self.index.begin():
            return
        noted = self.index.read_owner()
        if noted == owner:
            return
        if noted is not None:
            self._reject_other(noted, owner.run_id, home)
            if is_copied(noted, home) and not self._is_copied_from(noted):
                raise CheckpointError(
                    f"'{home}' is a copy of '{noted.run_dir}', whose checkpoints are in "
                    f"'{self.location}': the two would delete each other's. {OTHER_PLACE}"
                )
        elif is_new and self.index.entries:
            raise CheckpointError(
                f"The checkpoints in '{self.location}' are of a run of an earlier version, which "
                f"notes no run; the one in '{home}' begins now. To continue them, write "
                f"resume='{self.location}'; else delete them. {OTHER_PLACE}"
            )
        if not is_url(self.location):  # There, the next save notes it.
            self.index.update(lambda entry: entry)

    def confirm(self) -> None:
        """Reject to write if another process has made the store another run's meanwhile."""
        owner = self.index.owner
        if owner is None or owner.run_dir is None:  # In a run's own directory nobody else saves.
            return
        noted = self.index.read_owner()
        if noted is not None:
            self._reject_other(noted, owner.run_id, owner.run_dir)

    def check_owner(self, run_dir: str | Path, run_id: str | None) -> None:
        """Reject a store that belongs to another run than the one in a directory."""
        noted = self.index.read_owner()
        if noted is not None:
            self._reject_other(noted, run_id, run_dir)

    def _is_copied_from(self, noted: Owner) -> bool:
        """Return whether this is a copy of a store that is still where its index says."""
        if (
            noted.place is None
            or is_url(self.location)
            or is_same_place(noted.place, self.location)
        ):
            return False
        return CheckpointStore(noted.place).index.read_owner() == noted

    def _reject_other(self, noted: Owner, run_id: str | None, run_dir: str | Path) -> None:
        if is_foreign(noted, run_dir, run_id):
            lost = ""
            if noted.run_dir is not None and not is_alive(noted):
                lost = (
                    " That run is not there any more: to continue it, name the checkpoints, with "
                    f"resume='{self.location}' and a new run directory; else delete them."
                )
            raise CheckpointError(
                f"The checkpoints in '{self.location}' belong to {noted}, not to the run in "
                f"'{run_dir}'.{lost} {OTHER_PLACE}"
            )

    def write(self, checkpoint: Mapping[str, object], saved: Saved, nbytes: int) -> Saved:
        """Make a checkpoint durable and list it.

        If the disk has no room for one more, older ones of the same hook are deleted.
        """
        return self._add(
            saved, nbytes, lambda: write_checkpoint(self.storage, saved.name, dict(checkpoint))
        )

    def write_shards(
        self,
        staged: Staged,
        saved: Saved,
        timeout: float = TIMEOUT,
        failed: Callable[[], str | None] = lambda: None,
    ) -> Saved | None:
        """Write this rank's part of a directory; the first rank lists it when it is whole.

        Args:
            staged: The checkpoint.
            saved: What the index lists.
            timeout: Seconds that the first rank waits for the others.
            failed: Called while it waits; if it returns a text, the wait ends with this reason.

        Returns:
            The entry of the index on the first rank, None on the others.
        """
        if not isinstance(self.storage, LocalStorage):
            raise CheckpointError(
                f"'{self.location}' cannot hold shards: all ranks write into one directory. Give a "
                "directory that they share."
            )
        path = self.storage.directory / saved.name
        if staged.rank > 0:
            write_shards(staged, path)
            return None

        def written() -> WrittenFile:
            return cast("WrittenFile", write_shards(staged, path, timeout, failed))

        return self._add(saved, staged.nbytes, written)

    def _add(self, saved: Saved, nbytes: int, write: Callable[[], WrittenFile]) -> Saved:
        # A process that is killed before the new entry is written must not leave the old one
        # beside the new file, which would then count as damaged.
        replaced = self.index.forget(saved.name)
        while True:
            try:
                # The free space may shrink while the file is written, so the error of the disk
                # itself is handled in the same way as the check.
                _check_space(self.storage, nbytes)
                written = write()
                break
            except OSError as error:
                if error.errno not in DISK_FULL or not self._delete_oldest_for(saved):
                    raise
        self._made.add(saved.name)
        return self.index.add(
            replace(saved, size=written.size, crc32=written.crc32, time=time.time()), replaced
        )

    def promote(self, name: str, saved: Saved) -> Saved:
        """Keep an existing checkpoint under a second name."""
        source = self.index.entries.get(name)
        if source is None:
            raise CheckpointError(f"'{name}' cannot be kept as '{saved.name}': it is missing.")
        self.storage.copy(name, saved.name)
        self._made.add(saved.name)
        # These describe the file, and the file is the same.
        same = {"left_out": source.left_out, "size": source.size, "crc32": source.crc32}
        return self.index.add(replace(saved, time=time.time(), **same))  # type: ignore[arg-type]

    def amend(self, name: str, iteration: int, metrics: Mapping[str, float]) -> None:
        """Add the metrics of a validation to the checkpoint of the same iteration."""
        listed = self.index.entries.get(name)
        # The name alone does not tell: a later save may have written another iteration under it.
        if listed is not None and listed.iter == iteration:
            self.index.update(
                lambda entry: entry.with_validation(metrics) if entry.name == name else entry
            )

    def holds(self, name: str, iteration: int) -> bool:
        """Return whether a checkpoint of this iteration exists under this name.

        A remote store is not asked, because training would wait for its answer.
        """
        listed = self.index.loaded_entries.get(name)
        if listed is None or listed.iter != iteration:
            return False
        return is_url(self.location) or name in self.storage.names()

    def mark_last(self, name: str) -> None:
        """Name the checkpoint from which a resume starts."""
        self.storage.write(LAST, lambda file: write_all(file, f"{name}\n".encode()))

    def last(self) -> str | None:
        """Return the checkpoint that was marked as the last one."""
        if LAST not in self.storage.names():
            return None
        with self.storage.open(LAST) as file:
            # Bounded, and reduced to a file name: anybody may have written this file.
            return file.read(LONGEST_POINTER).decode("utf-8", "replace").strip().rsplit("/", 1)[-1]

    def prune(self, keep: Keep) -> list[str]:
        """Delete the checkpoints that an owner no longer keeps; return their names."""
        listed = self.index.entries.values()
        if not surplus(listed, keep):
            return []
        deleted = [name for name in expendable(listed, keep) if self._may_delete(name)]
        # The files first: a crash in between leaves an entry without a file, which does no harm.
        # The other way round it would leave a file that nothing ever deletes.
        for name in deleted:
            self.storage.remove(name)
        left = {entry.name: entry for entry in without_surplus(listed, keep)}
        self.index.update(lambda entry: left.get(entry.name))
        return deleted

    def newest(
        self, last: str | None = None, *, whole: bool = True
    ) -> tuple[str, dict[str, object]] | None:
        """Load the newest checkpoint that is whole; warn about those that were skipped.

        Args:
            last: The one to try first, if not the store's own ``last_checkpoint``.
            whole: Whether to read the tensors of a directory; otherwise they are verified only.

        Raises:
            CheckpointError: If there are checkpoints and none can be used: starting from zero
                would look like a resume and lose the run.
        """
        skipped: list[str] = []
        listed = self._listed(last)
        found = self._first_good(listed, skipped, whole=whole)
        found = found or self._best_unlisted(listed, skipped, whole=whole)
        if found is not None:
            if skipped:
                _log.warning("%s Resuming from '%s' instead.", " ".join(skipped), found[0])
            return found
        if skipped:
            raise CheckpointError(
                f"No checkpoint in '{self.location}' can be used. {' '.join(skipped)}"
            )
        return None

    def load(self, name: str, *, whole: bool = True) -> dict[str, object]:
        """Read a checkpoint of a run; reject a damaged file, and one that is something else."""
        checkpoint = self.read(name, whole=whole)
        if find_mismatch(checkpoint, REQUIRED_PARTS, ""):
            raise CheckpointError(
                f"'{self.location}/{name}' is not a checkpoint of a run and cannot be resumed; to "
                "take only the weights of a file, use load_from=."
            )
        return checkpoint

    def read(self, name: str, *, whole: bool = True) -> dict[str, object]:
        """Read any file of tensors in plain containers; reject a damaged one."""
        return read_checkpoint(self.storage, name, self.index.entries.get(name), whole=whole)

    def clean(self) -> None:
        """Delete what a killed process left half written."""
        if left := self.storage.clean():
            _log.info("Deleted what a killed process left half written: %s", ", ".join(left))

    def _listed(self, last: str | None) -> list[str]:
        """List the indexed checkpoints in the order in which a resume tries them."""
        last = self.last() if last is None else last
        # The newest save comes first, not the highest iteration: a run that went back to an older
        # checkpoint continues from there.
        newest = [e.name for e in reversed(self.index.entries.values()) if e.is_resumable]
        return list(dict.fromkeys([*([last] if last else []), *newest]))

    def _first_good(
        self, names: list[str], skipped: list[str], *, whole: bool
    ) -> tuple[str, dict[str, object]] | None:
        for name in names:
            try:
                return name, self.load(name, whole=whole)
            except CheckpointError as error:
                skipped.append(str(error))
        return None

    def _best_unlisted(
        self, listed: list[str], skipped: list[str], *, whole: bool
    ) -> tuple[str, dict[str, object]] | None:
        """Return the checkpoint with the most iterations among files that the index does not list.

        There are such files when the index itself was lost, and with it the order of saving.
        """
        indexed = {*listed, *self.index.entries}
        best: tuple[int, str, dict[str, object]] | None = None
        for name in self.storage.names():
            is_checkpoint = is_checkpoint_name(name) or _is_directory(self.storage, name)
            if name in indexed or not is_checkpoint or is_of_exception(name):
                continue
            found = self._first_good([name], skipped, whole=whole)
            if found is not None:
                done = cast("dict[str, int]", found[1]["progress"]).get("iter", 0)
                best = max(best or (done, *found), (done, *found), key=lambda file: file[0])
        return best[1:] if best else None

    def _may_delete(self, name: str) -> bool:
        """Return whether a file that the index lists is a checkpoint of ours; warn about others."""
        if name in self._made or name not in self.storage.names():
            return True
        # A copy under a name of the user's is the user's, though its content is ours. A hook that
        # saves under names of its own is known by what it has saved since the start.
        is_named = is_own_name(name) or form_of(name) in map(form_of, self._made)
        if is_named and is_ours(self.storage, name):
            return True
        _log.warning(
            "'%s/%s' is listed as a checkpoint and is not one of hookloop's, so it is not deleted.",
            self.location,
            name,
        )
        return False

    def _delete_oldest_for(self, wanted: Saved) -> bool:
        """Delete the oldest checkpoint that frees space; return whether there was one."""
        if not isinstance(self.storage, LocalStorage):
            return False
        listed = list(self.index.entries.values())
        names = set(self.storage.names())
        safe = (one for one in reversed(listed) if _is_safe(self.storage, one, names))
        for entry in spare(listed, wanted, next(safe, None)):
            is_freed = entry.name in names and self.storage.frees(entry.name)
            if is_freed and self._may_delete(entry.name):
                _log.warning(
                    "The disk of '%s' is full: '%s' is deleted to make room for '%s'.",
                    self.location,
                    entry.name,
                    wanted.name,
                )
                self.storage.remove(entry.name)
                return True
        return False


def _is_safe(storage: LocalStorage, entry: Saved, names: set[str]) -> bool:
    """Return whether a run can be resumed from a checkpoint; the whole file is read."""
    if not entry.is_resumable or entry.name not in names:
        return False
    if _is_directory(storage, entry.name):
        try:
            return verify(storage.directory / entry.name).crc32 == entry.crc32
        except CheckpointError:
            return False
    with storage.open(entry.name) as file:
        return find_damage(file, entry.crc32) is None


def _is_directory(storage: Storage, name: str) -> bool:
    """Return whether a checkpoint is a directory, which only a local store has."""
    return isinstance(storage, LocalStorage) and is_checkpoint_directory(storage.directory / name)


def _check_space(storage: Storage, nbytes: int) -> None:
    free = storage.free_bytes()
    if free is not None and free < nbytes:
        raise OSError(
            errno.ENOSPC,
            f"{os.strerror(errno.ENOSPC)}: it takes {nbytes / 1e6:.1f} MB, "
            f"{free / 1e6:.1f} MB are free",
            storage.url,
        )


def load(path: str | Path) -> dict[str, object]:
    """Read a checkpoint file by its path or URL."""
    location, _, name = str(path).rstrip("/").rpartition("/")
    root = "/" if str(path).startswith("/") else "."
    store = CheckpointStore(location or root)
    if name not in store.storage.names():
        raise CheckpointError(f"There is no checkpoint '{path}'.")
    return store.read(name)
