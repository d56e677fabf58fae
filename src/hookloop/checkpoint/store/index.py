"""The index of a store: what each checkpoint holds, how large it is, and its checksum."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from math import isfinite
from pathlib import Path
from typing import Any, Literal, cast

from hookloop.checkpoint.state.shape import (
    Each,
    Maybe,
    Named,
    check_state,
    is_count,
    is_flag,
    is_number,
    is_text,
    one_of,
)
from hookloop.checkpoint.store.storage import LocalStorage, Storage, is_file_name, write_all
from hookloop.runs.checkpoint_names import INDEX
from hookloop.runs.identity import Owner, as_id
from hookloop.runs.policy import Rule
from hookloop.runs.records import to_json, to_number

Kind = Literal["periodic", "best", "exception", "other"]

LARGEST_INDEX = 1 << 26
"""Bytes of the file that are read at most."""

ENTRY = {
    "name": is_text,
    "iter": is_count,
    "epoch": is_count,
    "size?": is_count,
    "crc32?": is_count,
    "kind?": one_of("periodic", "best", "exception", "other"),
    "owners?": Maybe(Each(is_text)),
    "forever?": is_flag,
    "left_out?": Maybe(Each(is_text)),
    "metrics?": Maybe(Named(lambda value: is_number(to_number(value)))),
    "validated?": is_flag,
    "time?": is_number,
    "rule?": Maybe(one_of("greater", "less")),
}
"""What an entry must look like: a stranger may have written the file."""

_log = logging.getLogger("hookloop")


@dataclass(frozen=True)
class Saved:
    """A checkpoint that is safely in its store, as the index lists it.

    Attributes:
        name: The file's name.
        location: Directory or URL of the store.
        iter: Iterations completed in it.
        epoch: Epochs completed in it.
        size: Bytes of the file.
        crc32: Checksum of the file, see `hookloop.runs.checksum`.
        kind: Why it was saved.
        owners: The hooks that asked for it; it is deleted when none of them keeps it any more.
        forever: Whether it is never deleted to make room for newer ones.
        left_out: Parts that it does not hold; if there are any, it cannot be resumed from.
        metrics: The metrics of its own iteration, by their full names; those of the validation
            are added after the validation.
        validated: Whether the metrics include the validation of its own iteration.
        time: When it was saved.
        rule: Whether more or less of the metric that its owner names is better, if several of the
            best are kept; otherwise the last one that was saved is the best.
    """

    name: str
    location: str
    iter: int
    epoch: int
    size: int = 0
    # SHA-256 of 600 MB would take 0.43 s, and CRC-32 detects a damaged file as well. A published
    # file has its SHA-256 in its name.
    crc32: int = 0
    kind: Kind = "other"
    owners: tuple[str, ...] = ()
    forever: bool = False
    left_out: tuple[str, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    validated: bool = False
    time: float = 0.0
    rule: Rule | None = None

    @property
    def path(self) -> Path:
        """The file, in a local store."""
        return Path(self.location) / self.name

    @property
    def url(self) -> str:
        """Where it is, as text: its path or URL."""
        return f"{self.location}/{self.name}"

    def describe(self) -> dict[str, object]:
        """Return what a file that is made of it says: JSON has neither NaN nor infinity."""
        metrics = {name: value for name, value in self.metrics.items() if isfinite(value)}
        return {"epoch": self.epoch, "iter": self.iter, "metrics": metrics}

    @property
    def is_resumable(self) -> bool:
        """Whether a resume may choose it without being told to."""
        # A failed run saved the state that led to the failure.
        return self.kind != "exception" and not self.left_out

    def with_validation(self, validation: Mapping[str, float]) -> Saved:
        """Return the entry with the results of its own validation."""
        return replace(self, metrics={**self.metrics, **validation}, validated=True)


class Index:
    """The entries of a store, in the order of saving; the file is rewritten at each change.

    Args:
        storage: Where the files are.
        location: Directory or URL of the store.
    """

    def __init__(self, storage: Storage, location: str) -> None:
        self._storage = storage
        self._location = location
        self._entries: dict[str, Saved] | None = None
        self.owner: Owner | None = None
        """The run that the store is written for; an entry of the file."""

    @property
    def entries(self) -> dict[str, Saved]:
        """The checkpoints by name, oldest first."""
        return self.load()

    @property
    def loaded_entries(self) -> dict[str, Saved]:
        """The entries that were already read or written: the store is not asked."""
        return self._entries or {}

    def load(self) -> dict[str, Saved]:
        """Read the file on the first call; return the entries."""
        if self._entries is None:
            self._entries = self._read()
        return self._entries

    def forget(self, name: str) -> Saved | None:
        """Remove the entry of a file that is about to be replaced, and return it."""
        found = self.entries.get(name)
        if found is not None:
            self.update(lambda entry: None if entry.name == name else entry)
        return found

    def add(self, saved: Saved, replaced: Saved | None = None) -> Saved:
        """Add a checkpoint; one that two hooks asked for belongs to both."""
        others = dict(self.entries)
        same = others.pop(saved.name, None) or replaced
        if same is not None and (same.iter, same.kind) == (saved.iter, saved.kind):
            owners = tuple(dict.fromkeys([*same.owners, *saved.owners]))
            saved = replace(saved, owners=owners, forever=same.forever or saved.forever)
        self._write({**others, saved.name: saved})
        return saved

    def update(self, change: Callable[[Saved], Saved | None]) -> None:
        """Replace each entry by what ``change`` returns; None removes it."""
        changed = {name: change(entry) for name, entry in self.entries.items()}
        self._write({name: entry for name, entry in changed.items() if entry is not None})

    def read_owner(self) -> Owner | None:
        """Return the run that the file names now, which another process may have changed."""
        try:
            listed = self._parse()
        except (ValueError, RecursionError):  # Reading the entries reports it.
            return None
        return _owner_in(listed)

    def begin(self) -> bool:
        """Write the file of a new store, for its owner; return False if there is a file already.

        Only in a local directory, where of two runs that do so at once one comes first.
        """
        if not isinstance(self._storage, LocalStorage):
            return False
        return self._storage.create(INDEX, self._text([]))

    def _write(self, entries: dict[str, Saved]) -> None:
        existing = set(self._storage.names())  # The user may have deleted some files.
        kept = {name: entry for name, entry in entries.items() if name in existing}
        listed = [asdict(entry) for entry in kept.values()]
        for entry in listed:
            entry.pop("location")  # The directory may be moved.
            if entry["rule"] is None:
                del entry["rule"]
        data = self._text(listed)
        self._storage.write(INDEX, lambda file: write_all(file, data))
        # Only now: if the write fails and is tried again, it starts from what the file holds.
        self._entries = kept

    def _text(self, listed: list[dict[str, object]]) -> bytes:
        note = {} if self.owner is None else asdict(self.owner)
        note = {name: value for name, value in note.items() if value is not None}
        return f"{to_json({**note, 'checkpoints': listed}, indent=1)}\n".encode()

    def _parse(self) -> dict[str, Any]:
        """Return the content of the file; empty if there is none."""
        # A listing may miss a file that is replaced at this moment, so a local one is not listed;
        # a remote store may remember that there was none.
        is_local = isinstance(self._storage, LocalStorage)
        if not is_local and INDEX not in self._storage.names():
            return {"checkpoints": []}
        try:
            with self._storage.open(INDEX) as file:
                listed = json.loads(file.read(LARGEST_INDEX))
        except (FileNotFoundError, NotADirectoryError):
            return {"checkpoints": []}
        check_state(listed, {"checkpoints": Each(ENTRY)})
        return cast("dict[str, Any]", listed)

    def _read(self) -> dict[str, Saved]:
        try:
            listed = self._parse()
            if self.owner is None:  # Kept when the file is written again.
                self.owner = _owner_in(listed)
            entries = [self._entry(entry) for entry in listed["checkpoints"]]
        except (ValueError, RecursionError) as error:
            # Not fatal: checkpoints that are not listed are found by looking through the files.
            _log.warning("'%s/%s' cannot be read and is rebuilt: %s", self._location, INDEX, error)
            return {}
        return {entry.name: entry for entry in entries}

    def _entry(self, entry: Mapping[str, object]) -> Saved:
        # A later version may write fields that this one does not have.
        field_names = {field.name for field in fields(Saved)} - {"location"}
        values = {name: value for name, value in entry.items() if name in field_names}
        for name in ("owners", "left_out"):
            values[name] = tuple(values.get(name) or ())  # type: ignore[arg-type]
        if not is_file_name(str(values["name"])):
            # A name that leads out of the directory would let `prune` delete any file.
            raise ValueError(f"{values['name']!r} is not the name of a file in it")
        metrics = values.get("metrics") or {}
        values["metrics"] = {n: to_number(v) for n, v in metrics.items()}  # type: ignore[attr-defined]
        return Saved(location=self._location, **values)  # type: ignore[arg-type]


def _owner_in(listed: Mapping[str, object]) -> Owner | None:
    run_id = as_id(listed.get("run_id"))
    home, place = (
        path if isinstance(path := listed.get(name), str) else None for name in ("run_dir", "place")
    )
    return None if run_id is None else Owner(run_id, home, place)
