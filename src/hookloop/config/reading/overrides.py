"""Overrides of single values: ``optimizer.lr=0.01`` on the command line."""

from __future__ import annotations

import re

import yaml

from hookloop.config.other_keys import written_as
from hookloop.config.reading.yaml_file import parse_value, surprises_in
from hookloop.config.tree import COMMAND_LINE, Config, Key, spell
from hookloop.errors import Problem, nearest

Container = dict[str, object] | list[object]


class _Rejected(Exception):
    """An override that cannot be applied, with the message for the user."""


def override(config: Config, text: str) -> None:
    """Apply ``a.b=value``; the value is read as in a YAML file.

    Items of a list are named by their number, and entries of a list of hooks also by their type:
    ``hooks.StopAfter.epochs=3``. Missing mappings on the way are created, and so is a hook that a
    list of hooks does not have: ``hooks.again={type: Requeue}``.
    """
    where = f"{COMMAND_LINE}: {text}"
    path, sign, value_text = text.partition("=")
    if not sign or not path.strip():
        config.problems.append(Problem("an override is written key=value, without spaces.", where))
        return
    try:
        value = parse_value(value_text)
        walk = _Walk(config.tree, value)
        walk.to(path.strip().split("."))
        if value is None and walk.get() is not None:
            config.removed.add(walk.key)
        walk.put(value)
        config.warnings += [Problem(unlike, where) for unlike in surprises_in(value_text)]
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or error
        config.problems.append(Problem(f"the value is not valid YAML: {problem}.", where))
    except _Rejected as error:
        config.problems.append(Problem(str(error), where))
    else:
        # Only when it worked: a rejected override must not move the marks of the file's own values.
        config.forget(walk.key)
        config.marks.update(dict.fromkeys((*walk.made, walk.key), where))


class _Walk:
    """Walks from the root to the container of a value, and creates what is missing."""

    def __init__(self, root: dict[str, object], value: object) -> None:
        self.node: Container = root
        self._value = value
        self._new_hook: str | None = None
        self.key: Key = ()
        self.made: list[Key] = []

    def to(self, steps: list[str]) -> None:
        """Walk until `key` is that of the value, and `node` is what holds it."""
        while True:
            self._add_hook(steps)
            step, steps = _next_step(self.node, steps, self.key)
            self.key = (*self.key, step)
            if not steps:
                return
            self.enter()
            inner = _single(self.node)
            # `- StopAfter: {epochs: 3}`: the arguments are one level below.
            if inner and isinstance(step, int) and steps[0] not in self.node:
                self.key = (*self.key, inner)
                self.enter()

    def enter(self) -> None:
        """Step into the value at `key`; a bare type becomes a mapping that can hold arguments."""
        value = self.get()
        if isinstance(value, dict | list):
            self.node = value
            return
        if value is not None and not isinstance(value, str) and not callable(value):
            raise _Rejected(f"'{spell(self.key)}' is {value!r}: there is nothing below it to set.")
        entered: dict[str, object] = {"type": value}
        if value is None:
            entered = {}
            self.made.append(self.key)
        self.put(entered)
        self.node = entered

    def get(self) -> object:
        step = self.key[-1]
        return self.node[int(step)] if isinstance(self.node, list) else self.node.get(str(step))

    def _add_hook(self, steps: list[str]) -> None:
        """Add an entry to a list of hooks, if a hook is described that it does not have.

        A name without a description is more often misspelled than new.
        """
        name, *rest = steps
        is_described = isinstance(self._value, dict | str) if not rest else rest == ["type"]
        is_hooks = self.key[1:] == () and self.key[:1] != () and self.key[0] in written_as("hooks")
        if not isinstance(self.node, list) or not is_hooks or not is_described:
            return
        if not name.lstrip("-").isdigit() and all(name not in _names(item) for item in self.node):
            # With a type, although that comes later: `{name: ...}` alone would be a hook called so.
            self.node.append({"name": name, "type": None})
            self.made.append((*self.key, len(self.node) - 1))
            self._new_hook = None if rest else name

    def put(self, value: object) -> None:
        step = self.key[-1]
        if self._new_hook is not None:
            value, self._new_hook = _describe_hook(self._new_hook, value), None
        if isinstance(self.node, list):
            self.node[int(step)] = value
        else:
            self.node[str(step)] = value


def _next_step(node: Container, steps: list[str], key: Key) -> tuple[str | int, list[str]]:
    if isinstance(node, list):
        return _index(node, steps, key)
    # A key may contain dots itself (`my_project.hooks.MyHook`), so the longest that exists wins.
    for count in range(len(steps), 1, -1):
        if ".".join(steps[:count]) in node:
            return ".".join(steps[:count]), steps[count:]
    return steps[0], steps[1:]


def _index(node: list[object], steps: list[str], key: Key) -> tuple[int, list[str]]:
    if steps[0].lstrip("-").isdigit():
        index = int(steps[0])
        if not -len(node) <= index < len(node):
            raise _Rejected(f"'{spell(key)}' has {len(node)} entries: there is no {index}.")
        # Counted from the start, also for -1, because marks are.
        return index % len(node), steps[1:]
    names = [_names(item) for item in node]
    # The longest first, because a type may be a path with dots.
    for count in range(len(steps), 0, -1):
        wanted = ".".join(steps[:count])
        matching = [index for index, own in enumerate(names) if wanted in own]
        if len(matching) > 1:
            choices = " or ".join(f"{spell(key)}.{index}" for index in matching)
            raise _Rejected(f"'{wanted}' occurs more than once in '{spell(key)}': write {choices}.")
        if matching:
            return matching[0], steps[count:]
    options = [name for own in names for name in own]
    raise _Rejected(f"'{spell(key)}' has no entry '{steps[0]}'.{nearest(steps[0], options)}")


def _names(item: object) -> list[str]:
    """Return the names of an entry of a list: its name, its type, its type without the module."""
    if isinstance(item, dict):
        candidates = [item.get("name"), item.get("type", _single(item))]
    else:
        candidates = [item]
    names = [
        candidate if isinstance(candidate, str) else getattr(candidate, "__name__", None)
        for candidate in candidates
        if candidate is not None
    ]
    full = [name for name in names if name]
    # The last part too, so that a hook given by its path can be named like any other.
    return [*full, *(re.split("[.:]", name)[-1] for name in full)]


def _describe_hook(name: str, value: object) -> object:
    """Return an entry of a list that means what ``name: value`` does in a mapping of hooks."""
    if isinstance(value, str):
        return {"name": name, "type": value}
    if isinstance(value, dict) and "type" in value:
        return {"name": name, **value}
    return {name: value}


def _single(node: object) -> str | None:
    if isinstance(node, dict) and len(node) == 1 and "type" not in node:
        return str(next(iter(node)))
    return None
