"""Where checkpoints are kept: written whole, listed with checksums, read without running code.

A save goes: staged file, flushed -> renamed -> index -> ``last_checkpoint`` -> old files deleted.
Whatever moment a crash chooses, the newest file that ``last_checkpoint`` names is whole.
"""

from __future__ import annotations

import errno
import logging
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

from hookloop.checkpoint.index import Index, Kind, Saved
from hookloop.checkpoint.reading import read
from hookloop.checkpoint.shape import is_count, is_mapping, misfit
from hookloop.checkpoint.storage import LocalStorage, Storage, is_url, open_storage, put
from hookloop.checkpoint.sums import damage
from hookloop.checkpoint.writing import write_checkpoint
from hookloop.errors import CheckpointError
from hookloop.runs.layout import LONGEST_POINTER

LAST = "last_checkpoint"

FULL = (errno.ENOSPC, errno.EDQUOT)
"""Errors of a disk on which there is no room."""

LEAST = {"model": is_mapping, "progress": {"iter": is_count}}
"""What makes a file a checkpoint of a run."""

_log = logging.getLogger("hookloop")


class CheckpointStore:
    """The checkpoints of one directory or URL.

    Args:
        place: Directory, or URL for fsspec.
    """

    def __init__(self, place: str | Path) -> None:
        self.storage: Storage = open_storage(place)
        self.place = self.storage.url
        self.index = Index(self.storage, self.place)

    def write(self, checkpoint: Mapping[str, object], saved: Saved, nbytes: int) -> Saved:
        """Make a checkpoint durable and list it.

        Where the disk is too small for one more, older ones of the same hook are given up for it.
        """
        while True:
            try:
                self._check_space(nbytes)
                sums = write_checkpoint(self.storage, saved.name, dict(checkpoint))
                break
            except OSError as error:
                if error.errno not in FULL or not self._make_room(saved):
                    raise
        return self.index.add(replace(saved, size=sums.size, crc32=sums.crc32, time=time.time()))

    def promote(self, name: str, saved: Saved) -> Saved:
        """Keep a checkpoint that is here already under a second name."""
        source = self.index.entries.get(name)
        if source is None:
            raise CheckpointError(f"'{name}' cannot be kept as '{saved.name}': it is not there.")
        self.storage.copy(name, saved.name)
        left = {"left_out": source.left_out, "size": source.size, "crc32": source.crc32}
        return self.index.add(replace(saved, time=time.time(), **left))  # type: ignore[arg-type]

    def amend(self, name: str, iteration: int, metrics: Mapping[str, float]) -> None:
        """Add the metrics of its validation to a checkpoint of this very iteration."""
        listed = self.index.entries.get(name)
        if listed is not None and listed.iter == iteration:
            self.index.change(lambda one: one.amended(metrics) if one.name == name else one)

    def holds(self, name: str, iteration: int) -> bool:
        """Return whether a checkpoint of this very iteration is here under this name.

        A store elsewhere is not asked, because the training would wait for it.
        """
        listed = self.index.known.get(name)
        if listed is None or listed.iter != iteration:
            return False
        return is_url(self.place) or name in self.storage.names()

    def mark_last(self, name: str) -> None:
        """Name the checkpoint from which a resume begins."""
        self.storage.write(LAST, lambda file: put(file, f"{name}\n".encode()))

    def last(self) -> str | None:
        """Return the checkpoint that was marked as the last one."""
        if LAST not in self.storage.names():
            return None
        with self.storage.open(LAST) as file:
            return file.read(LONGEST_POINTER).decode("utf-8", "replace").strip().rsplit("/", 1)[-1]

    def prune(self, owner: str, kind: Kind, newest: int | None) -> list[str]:
        """Delete what an owner does not want to keep any more; return the names."""
        if newest is None:
            return []
        entries = self.index.entries.values()
        ours = [one for one in entries if owner in one.owners and one.kind == kind]
        surplus = {one.name for one in ours[:-newest] if not one.forever}
        gone = [one.name for one in ours if one.name in surplus and one.owners == (owner,)]
        # The files first: a crash in between leaves a line about a file that is not there, which
        # does no harm. The other way round it would leave a file that nobody ever deletes.
        for name in gone:
            self.storage.remove(name)

        def without(one: Saved) -> Saved | None:
            if one.name not in surplus:
                return one
            others = tuple(other for other in one.owners if other != owner)
            return replace(one, owners=others) if others else None

        if surplus:
            self.index.change(without)
        return gone

    def newest(self, last: str | None = None) -> tuple[str, dict[str, object]] | None:
        """Load the newest checkpoint that is whole; say which were skipped and why.

        Args:
            last: The one to try first, if not the store's own ``last_checkpoint``.

        Raises:
            CheckpointError: If there are checkpoints and none can be used: starting from zero
                would look like a resume and lose the run.
        """
        skipped: list[str] = []
        listed = self._listed(last)
        found = self._first_good(listed, skipped) or self._best_unlisted(listed, skipped)
        if found is not None:
            if skipped:
                _log.warning("%s Resuming from '%s' instead.", " ".join(skipped), found[0])
            return found
        if skipped:
            raise CheckpointError(
                f"No checkpoint in '{self.place}' can be used. {' '.join(skipped)}"
            )
        return None

    def load(self, name: str) -> dict[str, object]:
        """Read a checkpoint of a run; a damaged one, or none of ours, is refused."""
        checkpoint = self.read(name)
        if misfit(checkpoint, LEAST, ""):
            raise CheckpointError(
                f"'{self.place}/{name}' is no checkpoint of a run, and cannot be resumed; weights "
                "of a file can be taken with load_from=."
            )
        return checkpoint

    def read(self, name: str) -> dict[str, object]:
        """Read any file of tensors in plain containers; a damaged one is refused."""
        return read(self.storage, name, self.index.entries.get(name))

    def clean(self) -> None:
        """Delete what a killed process left half written."""
        if left := self.storage.clean():
            _log.info("Deleted what a killed process left half written: %s", ", ".join(left))

    def _listed(self, last: str | None) -> list[str]:
        """Order what is known of by how much it is worth for a resume: what was saved last.

        Not by the number of iterations: a run that went back to an older checkpoint goes on there.
        """
        last = self.last() if last is None else last
        newest = [one.name for one in reversed(self.index.entries.values()) if one.is_resumable]
        return list(dict.fromkeys([*([last] if last else []), *newest]))

    def _first_good(
        self, names: list[str], skipped: list[str]
    ) -> tuple[str, dict[str, object]] | None:
        for name in names:
            try:
                return name, self.load(name)
            except CheckpointError as error:
                skipped.append(str(error))
        return None

    def _best_unlisted(
        self, listed: list[str], skipped: list[str]
    ) -> tuple[str, dict[str, object]] | None:
        """Look through files that no index knows of, for one may be lost; the furthest wins."""
        known = {*listed, *self.index.entries}
        best: tuple[int, str, dict[str, object]] | None = None
        for name in self.storage.names():
            if name in known or not name.endswith(".pth") or name.startswith("exception_"):
                continue
            found = self._first_good([name], skipped)
            if found is not None:
                done = cast("dict[str, int]", found[1]["progress"]).get("iter", 0)
                best = max(best or (done, *found), (done, *found), key=lambda one: one[0])
        return best[1:] if best else None

    def _make_room(self, wanted: Saved) -> bool:
        """Delete the oldest checkpoint that makes room; return whether there was one.

        One that is whole stays in any case, and so does what nobody but the user may delete: the
        best, those kept for ever, those that another hook wants as well.
        """
        if not isinstance(self.storage, LocalStorage):
            return False
        listed = list(self.index.entries.values())
        names = set(self.storage.names())
        newest = next((one for one in reversed(listed) if self._is_safe(one, names)), None)
        for one in listed:
            is_spare = one.kind == wanted.kind == "periodic" and one.owners == wanted.owners
            if one is newest or newest is None or one.forever or not is_spare:
                continue
            if one.name in names and self.storage.frees(one.name):
                _log.warning(
                    "The disk of '%s' is full: '%s' is deleted to make room for '%s'.",
                    self.place,
                    one.name,
                    wanted.name,
                )
                self.storage.remove(one.name)
                return True
        return False

    def _is_safe(self, one: Saved, names: set[str]) -> bool:
        """Return whether a run could be resumed from a checkpoint, which is read to see that."""
        if not one.is_resumable or one.name not in names:
            return False
        with self.storage.open(one.name) as file:
            return damage(file, one.crc32) is None

    def _check_space(self, nbytes: int) -> None:
        free = self.storage.free_bytes()
        if free is not None and free < nbytes:
            raise OSError(
                errno.ENOSPC,
                f"{os.strerror(errno.ENOSPC)}: it takes {nbytes / 1e6:.1f} MB, "
                f"{free / 1e6:.1f} MB are free",
                self.place,
            )


def load(path: str | Path) -> dict[str, object]:
    """Read a checkpoint file by its path or URL."""
    place, _, name = str(path).rpartition("/")
    root = "/" if str(path).startswith("/") else "."
    store = CheckpointStore(place or root)
    if name not in store.storage.names():
        raise CheckpointError(f"There is no checkpoint '{path}'.")
    return store.read(name)
