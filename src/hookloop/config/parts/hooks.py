"""The hooks of a config, in all the ways in which they can be written.

A list: ``Name``, ``{Name: {arguments}}`` or ``{type: Name, ...}`` each. A mapping from names of
hooks: ``ema: {type: AverageWeights, ...}``. In both, null stands for a hook that was taken away.
"""

from __future__ import annotations

from typing import Literal, cast

from hookloop import dialects
from hookloop.config.parts.part import TYPE, Description, Part, PartReader
from hookloop.config.registry import HOOKS
from hookloop.config.tree import Key
from hookloop.core.hook import Priority
from hookloop.errors import HookError, nearest
from hookloop.every import Every
from hookloop.trainer.default_hooks import DEFAULT_HOOKS, our_name

INJECTED = ("model", "dataset", "output_dir")
"""What a hook gets when its constructor asks for it and the config does not say it."""

SETTINGS: dict[str, object] = {
    "name": str,
    "priority": object,
    "every": Every | int | str | None,
    "on_error": Literal["raise", "disable"],
    "dialect": str,
}
"""What can be said of every hook, beside the arguments of its constructor."""


def read_hooks(reader: PartReader, key: Key, value: object) -> list[object]:
    """Read a list or a mapping of hooks; the result holds parts, or hooks of a Python config."""
    if value is None:
        return []
    if isinstance(value, dict) and TYPE not in value:
        found = [
            _named(reader, (*key, name), name, item)
            for name, item in value.items()
            if not _is_removed(reader, (*key, name), item, value)
        ]
    elif isinstance(value, list):
        found = [
            _listed(reader, (*key, index), item)
            for index, item in enumerate(value)
            if not reader.is_removed((*key, index), item)
        ]
    else:
        example = value if isinstance(value, str | dict) else "..."
        reader.fault(key, f"expected a list of hooks, or a mapping from names. Write [{example}].")
        return []
    return [hook for hook in found if hook is not None]


def _is_removed(reader: PartReader, key: Key, item: object, all_of_them: dict[str, object]) -> bool:
    """Return whether null removes a hook; a hook without arguments is another thing."""
    name = str(key[-1])
    if item is None and key not in reader.config.removed and name in HOOKS:
        reader.fault(key, f"null removes a hook. For {name} without arguments write {{}}.")
        return True
    return reader.is_removed(key, item, all_of_them)


def read_default_hooks(
    reader: PartReader, key: Key, value: object
) -> dict[str, object] | Literal[False] | None:
    """Read changes to the standard set; an entry without a type changes the standard hook's own."""
    if value is None or value is False:
        return value
    if not isinstance(value, dict):
        reader.fault(key, f"expected a mapping from names to hooks, or false, got {value!r}.")
        return None
    changes: dict[str, object] = {}
    for said, item in value.items():
        at, name = (*key, said), our_name(str(said))
        if item is None and name not in DEFAULT_HOOKS:
            known = ", ".join(DEFAULT_HOOKS)
            hint = nearest(name, DEFAULT_HOOKS)
            reader.fault(at, f"there is no '{name}' to remove.{hint} There are: {known}.")
        elif isinstance(item, dict) and TYPE not in item and name not in DEFAULT_HOOKS:
            hint = nearest(name, DEFAULT_HOOKS) or f" There are: {', '.join(DEFAULT_HOOKS)}."
            reader.fault(at, f"no default hook is named '{name}', and it has no 'type'.{hint}")
        elif isinstance(item, dict) and TYPE not in item:
            written = Description(at, DEFAULT_HOOKS[name], at, dict(item), at)
            changes[name] = _read(reader, written)
        else:
            changes[name] = item if item is None else _listed(reader, at, _theirs(item))
    return changes


def _theirs(item: object) -> object:
    """Let a name that several dialects have mean that of the one that has default hooks."""
    if not isinstance(item, dict) or not isinstance(item[TYPE], str) or "dialect" in item:
        return item
    try:
        HOOKS.get(item[TYPE])
    except HookError:
        for dialect in dialects.installed().values():
            if dialect.default_hooks and item[TYPE] in (names := dialect.catalogue()):
                return {**item, TYPE: names[item[TYPE]]}
    return item


def _listed(reader: PartReader, key: Key, item: object) -> object:
    if isinstance(item, dict) and TYPE not in item and len(item) == 1:
        ((name, arguments),) = item.items()
        at = (*key, name)
        if arguments is not None and not isinstance(arguments, dict):
            reader.fault(at, f"expected a mapping of arguments for {name}, got {arguments!r}.")
            return None
        return _read(reader, Description(key, name, at, dict(arguments or {}), at))
    if isinstance(item, dict) and TYPE not in item and next(iter(item.values()), 0) is None:
        name, *others = item
        reader.fault(
            key, f"indent {', '.join(map(str, others))} further than {name}, as its arguments."
        )
        return None
    if not isinstance(item, str | dict | type) and not callable(item):
        return item  # A hook object of a Python config, or null.
    written = reader.describe(key, item)
    return written and _read(reader, written)


def _named(reader: PartReader, key: Key, name: str, item: object) -> object:
    if isinstance(item, dict) and TYPE not in item:  # `StopAfter: {epochs: 3}`
        return _read(reader, Description(key, name, key, dict(item), key))
    part = _listed(reader, key, item)
    if isinstance(part, Part):
        part.settings.setdefault("name", name)
    elif part is not None:
        named = getattr(part, "named", None)
        return named(name) if callable(named) else part
    return part


def _read(reader: PartReader, written: Description) -> Part | None:
    if "dialect" in written.arguments:
        _look_in_dialect(reader, written)
    if isinstance(written.type, str):
        written.type = dialects.stand_in(written.type)
    make = reader.resolve(written.type_key, written.type, HOOKS)
    dialect = dialects.dialect_of_class(make) if isinstance(make, type) else None
    settings = SETTINGS | dict.fromkeys(dialect.settings if dialect is not None else (), object)
    part = reader.read(written, HOOKS, supplied=INJECTED, settings=settings)
    if part is not None and dialect is not None and dialect.gives_all and part.signature.is_open:
        part.supplied = {*INJECTED} - {*part.arguments}
    if part is not None and "priority" in part.settings:
        try:
            Priority.parse(cast("int | str", part.settings["priority"]))
        except HookError as error:
            reader.fault((*written.arguments_key, "priority"), str(error))
    return part


def _look_in_dialect(reader: PartReader, written: Description) -> None:
    """Let a name mean the hook of the dialect that is given with it."""
    try:
        names = dialects.named(str(written.arguments["dialect"])).catalogue()
    except HookError as error:
        reader.fault((*written.arguments_key, "dialect"), str(error))
        return
    if isinstance(written.type, str):
        written.type = names.get(written.type, written.type)
