"""Where checkpoints are kept: written whole, listed with checksums, read without running code.

A save goes: staged file, flushed -> renamed -> index -> ``last_checkpoint`` -> old files deleted.
Whatever moment a crash chooses, the newest file that the index names is whole.
"""

from __future__ import annotations

import errno
import json
import logging
import pickle
import time
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Literal, cast

import torch

from hookloop.checkpoint.storage import LocalStorage, Storage, open_storage
from hookloop.errors import CheckpointError
from hookloop.runs.records import to_json

Kind = Literal["periodic", "best", "exception", "other"]
INDEX = "checkpoints.json"
LAST = "last_checkpoint"

_log = logging.getLogger("hookloop")


@dataclass(frozen=True)
class Saved:
    """A checkpoint that is safely in its store, as the index lists it.

    Attributes:
        name: The file's name.
        place: Directory or URL of the store.
        iter: Iterations completed in it.
        epoch: Epochs completed in it.
        size: Bytes of the file.
        crc32: Checksum of the file.
        kind: Why it was saved.
        owner: The hook that asked for it, whose retention it is under.
        metrics: What was known of it, for example its score.
    """

    name: str
    place: str
    iter: int
    epoch: int
    size: int = 0
    # SHA-256 of 600 MB takes 0.43 s here, CRC-32 0.15 s and finds a damaged file as well; a
    # published file has its SHA-256 in its name.
    crc32: int = 0
    kind: Kind = "other"
    owner: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    time: float = 0.0

    @property
    def path(self) -> Path:
        """The file, in a local store."""
        return Path(self.place) / self.name


@dataclass(frozen=True)
class Keep:
    """Which checkpoints of one owner stay: the newest, and every so many-th for ever."""

    newest: int | None = None
    every: int | None = None


class CheckpointStore:
    """The checkpoints of one directory or URL.

    Args:
        place: Directory, or URL for fsspec.
    """

    def __init__(self, place: str | Path) -> None:
        self.place = str(place)
        self.storage: Storage = open_storage(place)
        self._index: dict[str, Saved] | None = None

    def index(self) -> dict[str, Saved]:
        """Return what the store says it holds, oldest first."""
        if self._index is None:
            self._index = self._read_index()
        return self._index

    def write(self, checkpoint: Mapping[str, object], saved: Saved, nbytes: int) -> Saved:
        """Make a checkpoint durable and list it."""
        self._check_space(nbytes)
        sizes: list[int] = []
        sums: list[int] = []

        def write(file: BinaryIO) -> None:
            counting = _Counting(file)
            torch.save(dict(checkpoint), cast("BinaryIO", counting))
            sizes.append(counting.size)
            sums.append(counting.crc32)

        self.storage.write(saved.name, write)
        listed = replace(saved, size=sizes[0], crc32=sums[0], time=time.time())
        self._list(listed)
        return listed

    def promote(self, name: str, saved: Saved) -> Saved:
        """Keep a checkpoint that is here already under a second name."""
        source = self.index().get(name)
        if source is None:
            raise CheckpointError(f"'{name}' cannot be kept as '{saved.name}': it is not there.")
        self.storage.copy(name, saved.name)
        listed = replace(saved, size=source.size, crc32=source.crc32, time=time.time())
        self._list(listed)
        return listed

    def mark_last(self, name: str) -> None:
        """Name the checkpoint from which a resume begins."""
        self.storage.write(LAST, lambda file: _put(file, name + "\n"))

    def prune(self, owner: str, kind: Kind, keep: Keep) -> list[str]:
        """Delete what an owner does not want to keep any more; return the names."""
        if keep.newest is None:
            return []
        ours = [one for one in self.index().values() if (one.owner, one.kind) == (owner, kind)]
        surplus = [
            one.name
            for one in ours[: -keep.newest]
            if not (
                keep.every and (one.epoch if keep_by_epoch(one) else one.iter) % keep.every == 0
            )
        ]
        if surplus:
            self._index = {n: one for n, one in self.index().items() if n not in surplus}
            self._write_index()
        for name in surplus:
            self.storage.remove(name)
        return surplus

    def newest(self) -> tuple[str, dict[str, object]] | None:
        """Load the newest checkpoint that is whole; say which were skipped and why.

        Raises:
            CheckpointError: If there are checkpoints and none can be used: starting from zero
                would look like a resume and lose the run.
        """
        skipped: list[str] = []
        for name in self._candidates():
            try:
                checkpoint = self.load(name)
            except CheckpointError as error:
                skipped.append(str(error))
                continue
            if skipped:
                _log.warning("%s Resuming from '%s' instead.", " ".join(skipped), name)
            return name, checkpoint
        if skipped:
            raise CheckpointError(
                f"No checkpoint in '{self.place}' can be used. {' '.join(skipped)}"
            )
        return None

    def load(self, name: str) -> dict[str, object]:
        """Read a checkpoint of the store; a damaged one, or none of ours, is refused."""
        if name not in self.storage.names():
            raise CheckpointError(f"'{self.place}/{name}' is missing.")
        self._verify(name)
        with self.storage.open(name) as file:
            checkpoint = read(file, f"{self.place}/{name}")
        if "progress" not in checkpoint or "model" not in checkpoint:
            raise CheckpointError(f"'{self.place}/{name}' is no checkpoint of a run.")
        return checkpoint

    def clean(self) -> None:
        """Delete what a killed process left half written."""
        if isinstance(self.storage, LocalStorage) and (left := self.storage.clean()):
            _log.info("Deleted what a killed process left half written: %s", ", ".join(left))

    def _candidates(self) -> list[str]:
        """Order the files by how much they are worth for a resume."""
        names = self.storage.names()
        last = []
        if LAST in names:
            with self.storage.open(LAST) as file:
                last = [file.read().decode("utf-8", "replace").strip().rsplit("/", 1)[-1]]
        listed = [one for one in self.index().values() if one.kind != "exception"]
        newest = sorted(listed, key=lambda one: (one.iter, one.time), reverse=True)
        unlisted = [n for n in names if n.endswith(".pth") and n not in self.index()]
        return list(dict.fromkeys([*last, *(one.name for one in newest), *unlisted]))

    def _verify(self, name: str) -> None:
        listed = self.index().get(name)
        if listed is None:
            return
        size = self.storage.size(name)
        if size != listed.size:
            raise CheckpointError(
                f"'{self.place}/{name}' is damaged: it has {size} bytes instead of {listed.size}."
            )
        checksum = 0
        with self.storage.open(name) as file:
            while chunk := file.read(1 << 22):
                checksum = zlib.crc32(chunk, checksum)
        if checksum != listed.crc32:
            raise CheckpointError(f"'{self.place}/{name}' is damaged: its checksum is wrong.")

    def _check_space(self, nbytes: int) -> None:
        free = self.storage.free_bytes()
        if free is not None and free < nbytes:
            raise OSError(
                errno.ENOSPC,
                f"the checkpoint takes {nbytes / 1e6:.1f} MB, {free / 1e6:.1f} MB are free",
                self.place,
            )

    def _list(self, saved: Saved) -> None:
        self.index().pop(saved.name, None)
        self.index()[saved.name] = saved
        self._write_index()

    def _write_index(self) -> None:
        entries = [asdict(one) for one in self.index().values()]
        for entry in entries:
            entry.pop("place")  # The directory may be moved.
        text = to_json({"checkpoints": entries}, indent=1) + "\n"
        self.storage.write(INDEX, lambda file: _put(file, text))

    def _read_index(self) -> dict[str, Saved]:
        if INDEX not in self.storage.names():
            return {}
        with self.storage.open(INDEX) as file:
            text = file.read()
        try:
            entries = json.loads(text)["checkpoints"]
            return {entry["name"]: Saved(place=self.place, **entry) for entry in entries}
        except (ValueError, KeyError, TypeError) as error:
            _log.warning("'%s/%s' cannot be read and is made anew: %s", self.place, INDEX, error)
            return {}


def read(file: BinaryIO, label: str) -> dict[str, object]:
    """Read a checkpoint; only tensors and plain containers are accepted, so no code can run."""
    try:
        checkpoint = torch.load(file, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CheckpointError(f"'{label}' cannot be loaded: {first}") from error
    if not isinstance(checkpoint, dict):
        raise CheckpointError(f"'{label}' holds a {type(checkpoint).__name__}, not a checkpoint.")
    return checkpoint


def load(path: str | Path) -> dict[str, object]:
    """Read a checkpoint file by its path or URL."""
    place, _, name = str(path).rpartition("/")
    storage = open_storage(place or ".")
    if name not in storage.names():
        raise CheckpointError(f"There is no checkpoint '{path}'.")
    with storage.open(name) as file:
        return read(file, str(path))


def keep_by_epoch(saved: Saved) -> bool:
    """Tell whether a checkpoint is counted by epochs, as its name says."""
    return "epoch" in saved.name


class _Counting:
    """A file that counts and sums what is written to it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size = 0
        self.crc32 = 0

    def write(self, data: bytes) -> int:
        _put(self._file, data)
        self.size += len(data)
        self.crc32 = zlib.crc32(data, self.crc32)
        return len(data)

    def flush(self) -> None:
        self._file.flush()


def _put(file: BinaryIO, data: bytes | str) -> None:
    """Write all of the data: an unbuffered file may take a part at a time."""
    rest = memoryview(data.encode() if isinstance(data, str) else data)
    while rest:
        rest = rest[file.write(rest) :]
