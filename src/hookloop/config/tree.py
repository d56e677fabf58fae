"""A config in memory: a tree of plain values and, beside it, where each node was written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hookloop.errors import Fault
from hookloop.secret import Reference

Key = tuple[str | int, ...]
"""The way from the root to a node: ``("hooks", 2, "patience")``."""

Tree = dict[str, object]

REPLACE = "_delete_"


def spell(key: Key) -> str:
    """Write a key as messages show it.

    >>> spell(("hooks", 2, "patience"))
    'hooks[2].patience'
    """
    text = ""
    for step in key:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.removeprefix(".")


@dataclass
class Config:
    """What config files say: the tree, the place of each node, and the faults met so far.

    Reading keeps a fault that leaves the tree usable (a key given twice, a reference to nothing) in
    ``faults``; they are raised together with all that checking finds, so that a user mends a config
    in one go.

    Attributes:
        tree: Mappings, lists and scalars; from a Python file also classes, functions and objects.
        path: The file that was loaded.
        marks: ``file:line`` of nodes. A node without one is where its nearest ancestor is.
        faults: What is wrong with the files.
        warnings: What is read as something else than what is written.
        removed: Nodes that were there until null took them away.
        origins: Where the objects of a Python file can be found again, by their ``id``.
        references: Nodes whose value came from the environment or is a secret, as they are to be
            written.
    """

    tree: Tree
    path: Path
    marks: dict[Key, str] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    warnings: list[Fault] = field(default_factory=list)
    removed: set[Key] = field(default_factory=set)
    origins: dict[int, str] = field(default_factory=dict)
    references: dict[Key, Reference] = field(default_factory=dict)

    def where(self, key: Key) -> str | None:
        """Return where a node was written."""
        for length in range(len(key), -1, -1):
            if key[:length] in self.marks:
                return self.marks[key[:length]]
        return None

    def at(self, key: Key) -> object:
        """Return a node."""
        node: object = self.tree
        for step in key:
            node = node[step]  # type: ignore[index]
        return node

    def put(self, key: Key, value: object) -> None:
        """Replace a node."""
        self.at(key[:-1])[key[-1]] = value  # type: ignore[index]

    def add_fault(self, key: Key, message: str) -> None:
        """Note that something is wrong at a node."""
        self.faults.append(Fault(message, self.where(key)))

    def absorb(self, child: Config) -> None:
        """Merge another config over this one: mappings merge by key, anything else replaces.

        A mapping with ``_delete_: true`` replaces as well.
        """
        self._absorb(self.tree, child, child.tree, ())
        self.faults += child.faults
        self.warnings += child.warnings
        self.removed |= child.removed
        self.origins |= child.origins

    def forget(self, key: Key) -> None:
        """Drop the marks of a node and of all below it, because it is being replaced."""
        for old in [old for old in self.marks if old[: len(key)] == key]:
            del self.marks[old]

    def _absorb(self, mine: Tree, child: Config, theirs: Mapping[str, object], key: Key) -> None:
        for name, value in theirs.items():
            at = (*key, name)
            old = mine.get(name)
            if isinstance(old, dict) and isinstance(value, dict) and not value.get(REPLACE):
                self._absorb(old, child, value, at)
                moved = [at] if at in child.marks else []
            else:
                if value is None and old is not None:
                    self.removed.add(at)
                mine[name] = value
                self.forget(at)
                moved = [mark for mark in child.marks if mark[: len(at)] == at]
            self.marks.update({mark: child.marks[mark] for mark in moved})


def nodes(value: object, key: Key = ()) -> Iterator[tuple[Key, object]]:
    """Yield every node of a tree with its key, parents first."""
    yield key, value
    if isinstance(value, dict):
        for name, item in value.items():
            yield from nodes(item, (*key, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from nodes(item, (*key, index))
