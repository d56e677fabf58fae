"""Overrides of single values: ``optimizer.lr=0.01`` on the command line."""

from __future__ import annotations

import re

import yaml

from hookloop.config.reading.yaml_file import parse_value
from hookloop.config.tree import Config, Key, spell
from hookloop.errors import Fault, nearest

Container = dict[str, object] | list[object]


class _Refused(Exception):
    """An override that cannot be applied, with the reason for its user."""


def override(config: Config, text: str) -> None:
    """Apply ``a.b=value``; the value is read as in a YAML file.

    List items are reached by number, and entries of a list of hooks also by their type:
    ``hooks.StopAfter.epochs=3``. Mappings on the way are made when they are missing.
    """
    place = f"command line: {text}"
    path, sign, value_text = text.partition("=")
    if not sign or not path.strip():
        config.faults.append(Fault("an override is written key=value.", place))
        return
    try:
        value = parse_value(value_text)
        node, last, key = _walk(config.tree, path.strip().split("."))
        _put(node, last, value)
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or error
        config.faults.append(Fault(f"the value is not valid YAML: {problem}.", place))
    except _Refused as refusal:
        config.faults.append(Fault(str(refusal), place))
    else:
        config.forget(key)
        config.marks[key] = place


def _walk(root: dict[str, object], steps: list[str]) -> tuple[Container, str | int, Key]:
    """Go to the container of the last step; return it, the step in it, and the whole key."""
    node: Container = root
    key: Key = ()
    while True:
        step, steps = _next_step(node, steps, key)
        key = (*key, step)
        if not steps:
            return node, step, key
        node = _enter(node, step, key)
        inner = _single(node)
        # `- StopAfter: {epochs: 3}`: the arguments are one level below.
        if inner and isinstance(key[-1], int) and steps[0] not in node:
            node, key = _enter(node, inner, (*key, inner)), (*key, inner)


def _next_step(node: Container, steps: list[str], key: Key) -> tuple[str | int, list[str]]:
    if isinstance(node, list):
        return _index(node, steps, key)
    # A key may contain dots itself (`my_project.hooks.MyHook`): take the longest that exists.
    for count in range(len(steps), 1, -1):
        if ".".join(steps[:count]) in node:
            return ".".join(steps[:count]), steps[count:]
    return steps[0], steps[1:]


def _index(node: list[object], steps: list[str], key: Key) -> tuple[int, list[str]]:
    if steps[0].lstrip("-").isdigit():
        index = int(steps[0])
        if not -len(node) <= index < len(node):
            raise _Refused(f"'{spell(key)}' has {len(node)} entries: there is no {index}.")
        return index % len(node), steps[1:]
    names = [_names(item) for item in node]
    for count in range(len(steps), 0, -1):
        wanted = ".".join(steps[:count])
        matching = [index for index, own in enumerate(names) if wanted in own]
        if len(matching) > 1:
            choices = " or ".join(f"{spell(key)}.{index}" for index in matching)
            raise _Refused(f"'{wanted}' occurs more than once in '{spell(key)}': write {choices}.")
        if matching:
            return matching[0], steps[count:]
    known = [name for own in names for name in own]
    raise _Refused(f"'{spell(key)}' has no entry '{steps[0]}'.{nearest(steps[0], known)}")


def _names(item: object) -> list[str]:
    """How an entry of a list can be called: its name, its type, its type without the module."""
    if isinstance(item, dict):
        called = [item.get("name"), item.get("type", _single(item))]
    else:
        called = [item]
    names = [
        one if isinstance(one, str) else getattr(one, "__name__", None)
        for one in called
        if one is not None
    ]
    full = [name for name in names if name]
    return [*full, *(re.split("[.:]", name)[-1] for name in full)]


def _single(node: object) -> str | None:
    if isinstance(node, dict) and len(node) == 1 and "type" not in node:
        return str(next(iter(node)))
    return None


def _enter(node: Container, step: str | int, key: Key) -> Container:
    value = node[step] if isinstance(node, list) else node.get(str(step))  # type: ignore[index]
    if isinstance(value, dict | list):
        return value
    if value is not None and not isinstance(value, str) and not callable(value):
        raise _Refused(f"'{spell(key)}' is {value!r}: there is nothing below it to set.")
    # A bare type (`- StopAfter`) becomes a mapping that can hold arguments.
    made: dict[str, object] = {} if value is None else {"type": value}
    _put(node, step, made)
    return made


def _put(node: Container, step: str | int, value: object) -> None:
    node[step] = value  # type: ignore[index]
