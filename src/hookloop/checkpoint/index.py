"""The list of a store's checkpoints: what each holds, how large it is, and its checksum."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Literal

from hookloop.checkpoint.shape import (
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
from hookloop.checkpoint.storage import Storage, is_file_name, put
from hookloop.runs.records import to_json, to_number

Kind = Literal["periodic", "best", "exception", "other"]
INDEX = "checkpoints.json"

LARGEST_INDEX = 1 << 26
"""Bytes of it that are read."""

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
}
"""What an entry has to be: whoever made the directory wrote it."""

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
        crc32: Checksum of the file: `hookloop.checkpoint.sums`.
        kind: Why it was saved.
        owners: The hooks that asked for it; it goes when none of them wants it any more.
        forever: Whether retention passes it over.
        left_out: Parts that it does not hold; if there are any, it cannot be resumed from.
        metrics: The metrics of its own iteration, by their full names; those of the validation
            are added once it is done.
        validated: Whether the validation of its own iteration is among them.
        time: When it was saved.
    """

    name: str
    place: str
    iter: int
    epoch: int
    size: int = 0
    # SHA-256 of 600 MB would take 0.43 s, and CRC-32 finds a damaged file as well; a published
    # file has its SHA-256 in its name.
    crc32: int = 0
    kind: Kind = "other"
    owners: tuple[str, ...] = ()
    forever: bool = False
    left_out: tuple[str, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    validated: bool = False
    time: float = 0.0

    @property
    def path(self) -> Path:
        """The file, in a local store."""
        return Path(self.place) / self.name

    @property
    def is_resumable(self) -> bool:
        """Whether a resume may choose it by itself."""
        return self.kind != "exception" and not self.left_out

    def amended(self, validation: Mapping[str, float]) -> Saved:
        """Return the entry with the results of its own validation."""
        return replace(self, metrics={**self.metrics, **validation}, validated=True)


class Index:
    """What a store says it holds, in the order of saving; the file is rewritten at each change.

    Args:
        storage: Where the files are.
        place: Directory or URL of the store.
    """

    def __init__(self, storage: Storage, place: str) -> None:
        self._storage = storage
        self._place = place
        self._entries: dict[str, Saved] | None = None

    @property
    def entries(self) -> dict[str, Saved]:
        """The checkpoints by name, oldest first."""
        return self.load()

    @property
    def known(self) -> dict[str, Saved]:
        """The same, as far as it was read or written already: the store is not asked."""
        return self._entries or {}

    def load(self) -> dict[str, Saved]:
        """Read the list, unless that was done already."""
        if self._entries is None:
            self._entries = self._read()
        return self._entries

    def add(self, saved: Saved) -> Saved:
        """List a checkpoint; one that two hooks asked for belongs to both."""
        others = dict(self.entries)
        same = others.pop(saved.name, None)
        if same is not None and (same.iter, same.kind) == (saved.iter, saved.kind):
            owners = tuple(dict.fromkeys([*same.owners, *saved.owners]))
            saved = replace(saved, owners=owners, forever=same.forever or saved.forever)
        self._write({**others, saved.name: saved})
        return saved

    def change(self, change: Callable[[Saved], Saved | None]) -> None:
        """Replace entries by what ``change`` returns, None to drop one."""
        changed = {name: change(one) for name, one in self.entries.items()}
        self._write({name: one for name, one in changed.items() if one is not None})

    def _write(self, entries: dict[str, Saved]) -> None:
        there = set(self._storage.names())  # What somebody deleted is not listed any more.
        kept = {name: one for name, one in entries.items() if name in there}
        listed = [asdict(one) for one in kept.values()]
        for entry in listed:
            entry.pop("place")  # The directory may be moved.
        text = to_json({"checkpoints": listed}, indent=1) + "\n"
        self._storage.write(INDEX, lambda file: put(file, text.encode()))
        self._entries = kept

    def _read(self) -> dict[str, Saved]:
        if INDEX not in self._storage.names():
            return {}
        with self._storage.open(INDEX) as file:
            text = file.read(LARGEST_INDEX)
        try:
            listed = json.loads(text)
            check_state(listed, {"checkpoints": Each(ENTRY)})
            entries = [self._entry(one) for one in listed["checkpoints"]]
        except (ValueError, RecursionError) as error:
            _log.warning("'%s/%s' cannot be read and is made anew: %s", self._place, INDEX, error)
            return {}
        return {one.name: one for one in entries}

    def _entry(self, entry: Mapping[str, object]) -> Saved:
        known = {field.name for field in fields(Saved)}  # A later version may write more.
        values = {name: value for name, value in entry.items() if name in known}
        for name in ("owners", "left_out"):
            values[name] = tuple(values.get(name) or ())  # type: ignore[arg-type]
        if not is_file_name(str(values["name"])):
            # A name that leads elsewhere would let retention delete any file.
            raise ValueError(f"{values['name']!r} is not the name of a file in it")
        metrics = values.get("metrics") or {}
        values["metrics"] = {n: to_number(v) for n, v in metrics.items()}  # type: ignore[attr-defined]
        return Saved(place=self._place, **values)  # type: ignore[arg-type]
