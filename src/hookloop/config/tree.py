"""A config in memory: a tree of plain values, and the file and line of each node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hookloop.errors import Problem
from hookloop.secret import Reference

Key = tuple[str | int, ...]
"""The path from the root to a node: ``("hooks", 2, "patience")``."""

Tree = dict[str, object]

REPLACE = "_delete_"
COMMAND_LINE = "command line"
"""What a mark starts with, instead of a file, if the node was set by an override."""


def spell(key: Key) -> str:
    """Return a key as messages show it.

    >>> spell(("hooks", 2, "patience"))
    'hooks[2].patience'
    """
    text = ""
    for step in key:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.removeprefix(".")


@dataclass
class Config:
    """The content of config files: the tree, where each node was written, and the problems so far.

    A problem that leaves the tree usable (a key given twice, a reference to nothing) is kept in
    ``problems``. It is raised later together with what checking finds, so that the user can fix all
    of them in one go.

    Attributes:
        tree: Mappings, lists and scalars; from a Python file also classes, functions and objects.
        path: The file that was loaded.
        marks: ``file:line`` of nodes. A node without one has that of its nearest ancestor.
        problems: What is wrong with the files.
        warnings: Values that YAML reads as something else than what is written.
        removed: Nodes that existed until null removed them.
        origins: The import paths of the objects of a Python file, by their ``id``.
        references: Nodes whose value came from the environment or is a secret, with the text to
            write instead.
    """

    tree: Tree
    path: Path
    marks: dict[Key, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    removed: set[Key] = field(default_factory=set)
    origins: dict[int, str] = field(default_factory=dict)
    references: dict[Key, Reference] = field(default_factory=dict)

    def where(self, key: Key) -> str | None:
        """Return the ``file:line`` where a node was written."""
        # Nodes that code or a merge has made have no line of their own.
        for length in range(len(key), -1, -1):
            if key[:length] in self.marks:
                return self.marks[key[:length]]
        return None

    def is_override(self, key: Key) -> bool:
        """Return whether a node was set on the command line."""
        return is_on_command_line(self.where(key))

    def at(self, key: Key) -> object:
        """Return a node."""
        node: object = self.tree
        for step in key:
            node = node[step]  # type: ignore[index]
        return node

    def put(self, key: Key, value: object) -> None:
        """Replace a node."""
        self.at(key[:-1])[key[-1]] = value  # type: ignore[index]

    def add_problem(self, key: Key, message: str) -> None:
        """Add a problem of a node."""
        self.problems.append(Problem(message, self.where(key)))

    def absorb(self, child: Config) -> None:
        """Merge another config over this one: mappings merge by key, anything else replaces.

        A mapping with ``_delete_: true`` replaces as well.
        """
        # References are not merged: they are found after all files and overrides are read.
        self._absorb(self.tree, child, child.tree, ())
        self.problems += child.problems
        self.warnings += child.warnings
        self.removed |= child.removed
        self.origins |= child.origins

    def forget(self, key: Key) -> None:
        """Delete the marks of a node and of everything below it, because it is being replaced."""
        for old in [old for old in self.marks if old[: len(key)] == key]:
            del self.marks[old]

    def _absorb(self, mine: Tree, child: Config, theirs: Mapping[str, object], key: Key) -> None:
        for name, value in theirs.items():
            at = (*key, name)
            old = mine.get(name)
            if isinstance(old, dict) and isinstance(value, dict) and not value.get(REPLACE):
                self._absorb(old, child, value, at)
                # The calls below took the marks of the child's own entries; others keep the base's.
                moved = [at] if at in child.marks else []
            else:
                # Kept, because a null that removes nothing is reported as a mistake.
                if value is None and old is not None:
                    self.removed.add(at)
                mine[name] = value
                self.forget(at)
                moved = [mark for mark in child.marks if mark[: len(at)] == at]
            self.marks.update({mark: child.marks[mark] for mark in moved})


def is_on_command_line(where: str | None) -> bool:
    """Return whether a mark is that of an override rather than of a file."""
    return where is not None and where.startswith(COMMAND_LINE)


def nodes(value: object, key: Key = ()) -> Iterator[tuple[Key, object]]:
    """Yield every node of a tree with its key, parents first."""
    yield key, value
    if isinstance(value, dict):
        for name, item in value.items():
            yield from nodes(item, (*key, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from nodes(item, (*key, index))
