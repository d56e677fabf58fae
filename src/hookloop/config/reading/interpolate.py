"""References in values: ``${optimizer.lr}``, ``${env:HOME}``, ``${env:SEED,0}``.

A reference that is the whole value keeps the type of what it names; inside text it is written in.
``$${`` stands for the characters ``${``.
"""

from __future__ import annotations

import copy
import os
import re

import yaml

from hookloop.config.reading.yaml_file import parse_value
from hookloop.config.tree import Config, Key, nodes, spell
from hookloop.errors import nearest

_REFERENCE = re.compile(r"(?<!\$)\$\{([^${}]*)\}")


class _Unresolved(Exception):
    """A reference to nothing or to itself, with the reason for its user."""


def interpolate(config: Config) -> None:
    """Replace every reference in the tree; those that lead nowhere become faults."""
    Interpolation(config).run()


def escape(text: str) -> str:
    """Protect text that is no reference, so that it reads back as it is.

    >>> escape("costs ${price}")
    'costs $${price}'
    """
    return text.replace("${", "$${")


class Interpolation:
    """One pass over a tree; a value that is referred to is resolved before it is used."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.open: list[str] = []

    def run(self) -> None:
        """Resolve the references of the whole tree."""
        for key, value in list(nodes(self.config.tree)):
            if isinstance(value, str) and "${" in value:
                try:
                    self._assign(key, self._resolve(value))
                except _Unresolved as problem:
                    self.config.add_fault(key, f"{spell(key)}: {problem}")

    def _assign(self, key: Key, value: object) -> None:
        parent = self.config.tree
        for step in key[:-1]:
            parent = parent[step]  # type: ignore[index, assignment]
        parent[key[-1]] = value  # type: ignore[index]
        if value is None:
            self.config.removed.add(key)

    def _resolve(self, text: str) -> object:
        whole = _REFERENCE.fullmatch(text)
        if whole:
            return self._look_up(whole[1], is_whole=True)
        filled = _REFERENCE.sub(lambda match: str(self._look_up(match[1], is_whole=False)), text)
        return filled.replace("$${", "${")

    def _look_up(self, name: str, *, is_whole: bool) -> object:
        if name.startswith("env:"):
            return _environment(name.removeprefix("env:"), is_whole=is_whole)
        if name in self.open:
            circle = " -> ".join([*self.open[self.open.index(name) :], name])
            raise _Unresolved(f"'${{{name}}}' refers to itself: {circle}.")
        self.open.append(name)
        try:
            value = self._value(name)
            copied = self._deep(copy.deepcopy(value))
            if id(value) in self.config.origins:
                self.config.origins[id(copied)] = self.config.origins[id(value)]
            return copied
        finally:
            self.open.pop()

    def _deep(self, value: object) -> object:
        if isinstance(value, str):
            return self._resolve(value) if "${" in value else value
        if isinstance(value, dict):
            return {name: self._deep(item) for name, item in value.items()}
        if isinstance(value, list):
            return [self._deep(item) for item in value]
        return value

    def _value(self, name: str) -> object:
        value: object = self.config.tree
        for step in name.split("."):
            if isinstance(value, dict) and step in value:
                value = value[step]
            elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
                value = value[int(step)]
            else:
                known = [_dotted(key) for key, _ in nodes(self.config.tree) if key]
                raise _Unresolved(f"'${{{name}}}' refers to nothing.{nearest(name, known)}")
        return value


def _environment(text: str, *, is_whole: bool) -> object:
    name, comma, default = text.partition(",")
    found = os.environ.get(name.strip())
    if found is None:
        if not comma:
            raise _Unresolved(
                f"the environment variable '{name.strip()}' is not set. "
                f"Set it, or give a default: ${{env:{name.strip()},default}}."
            )
        found = default.strip()
    return _scalar(found) if is_whole else found


def _scalar(text: str) -> object:
    """Read a variable as a config value would be read, since the environment holds only text."""
    try:
        value = parse_value(text)
    except yaml.YAMLError:
        return text
    return value if isinstance(value, int | float | None) else text


def _dotted(key: Key) -> str:
    return ".".join(str(step) for step in key)
