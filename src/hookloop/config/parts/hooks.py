"""Read the hooks of a config, in every form in which they can be written.

A list holds ``Name``, ``{Name: {arguments}}`` or ``{type: Name, ...}``. A mapping has the names of
the hooks as keys: ``ema: {type: AverageWeights, ...}``. In both, null stands for a removed hook.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, cast

from hookloop import dialects
from hookloop.config.locate import locate
from hookloop.config.parts.part import TYPE, Description, Part, PartReader
from hookloop.config.parts.signature import Signature
from hookloop.config.registry import HOOKS
from hookloop.config.tree import Key
from hookloop.engine.hook import Priority
from hookloop.errors import HookError, nearest
from hookloop.every import Every
from hookloop.trainer.adapters import dialect_of_class, named
from hookloop.trainer.default_hooks import KNOWN_HOOKS, our_name

INJECTED = ("model", "dataset", "output_dir")
"""Arguments that a hook's constructor gets if it has them and the config does not give them."""

SETTINGS: dict[str, object] = {
    "name": str,
    "priority": object,
    "every": Every | int | str | None,
    "on_error": Literal["raise", "disable"],
    "dialect": str,
}
"""What can be set for every hook, in addition to the arguments of its constructor."""


def read_hooks(reader: PartReader, key: Key, value: object) -> list[object]:
    """Read a list or a mapping of hooks; return parts, or the hook objects of a Python config."""
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
        reader.report(key, f"expected a list of hooks, or a mapping from names. Write [{example}].")
        return []
    return [hook for hook in found if hook is not None]


def _is_removed(reader: PartReader, key: Key, item: object, hooks: dict[str, object]) -> bool:
    """Return whether null removes a hook; null for a hook without arguments is reported."""
    name = str(key[-1])
    if item is None and key not in reader.config.removed and name in HOOKS:
        reader.report(key, f"null removes a hook. For {name} without arguments write {{}}.")
        return True
    return reader.is_removed(key, item, hooks)


def read_default_hooks(
    reader: PartReader, key: Key, value: object
) -> dict[str, object] | Literal[False] | None:
    """Read changes to the standard set; an entry without a type changes the standard hook."""
    if value is None or value is False:
        return value
    if not isinstance(value, dict):
        reader.report(key, f"expected a mapping from names to hooks, or false, got {value!r}.")
        return None
    changes: dict[str, object] = {}
    for written_name, item in value.items():
        at, name = (*key, written_name), our_name(str(written_name))
        if item is None and name not in KNOWN_HOOKS:
            names = ", ".join(KNOWN_HOOKS)
            hint = nearest(name, KNOWN_HOOKS)
            reader.report(at, f"there is no '{name}' to remove.{hint} There are: {names}.")
        elif isinstance(item, dict) and TYPE not in item and name not in KNOWN_HOOKS:
            hint = nearest(name, KNOWN_HOOKS) or f" There are: {', '.join(KNOWN_HOOKS)}."
            reader.report(at, f"no default hook is named '{name}', and it has no 'type'.{hint}")
        elif isinstance(item, dict) and TYPE not in item:
            written = Description(at, KNOWN_HOOKS[name], at, dict(item), at)
            changes[name] = _read(reader, written)
        else:
            changes[name] = item if item is None else _listed(reader, at, item)
    return changes


def _listed(reader: PartReader, key: Key, item: object) -> object:
    if isinstance(item, dict) and TYPE not in item and len(item) == 1:
        ((name, arguments),) = item.items()
        at = (*key, name)
        if arguments is not None and not isinstance(arguments, dict):
            reader.report(at, f"expected a mapping of arguments for {name}, got {arguments!r}.")
            return None
        return _read(reader, Description(key, name, at, dict(arguments or {}), at))
    # `- StopAfter:` with `epochs: 3` not indented below it: YAML reads both as keys of one mapping.
    if isinstance(item, dict) and TYPE not in item and next(iter(item.values()), 0) is None:
        name, *others = item
        reader.report(
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
        # A name that is written among the arguments comes first.
        part.settings.setdefault("name", name)
    elif part is not None:
        # A hook object of a Python config; a foreign one may have no names.
        named = getattr(part, "named", None)
        return named(name) if callable(named) else part
    return part


def _read(reader: PartReader, written: Description) -> Part | None:
    if "dialect" in written.arguments:
        _look_in_dialect(reader, written)
    if isinstance(written.type, str):
        written.type = _by_section(written.type, written.key)
        # A path into a foreign package that is not installed leads to the hook that replaces it.
        written.type = dialects.stand_in(written.type)
    make = reader.resolve(written.type_key, written.type, HOOKS)
    if make is not None and isinstance(written.type, str):
        written.hints = _other_systems(written.type, make, written.arguments)
    dialect = dialect_of_class(make) if isinstance(make, type) else None
    settings = SETTINGS | dict.fromkeys(dialect.settings if dialect is not None else (), object)
    part = reader.read(written, HOOKS, supplied=INJECTED, settings=settings)
    # With **kwargs, the signature does not show what the hook reads from them.
    if part is not None and dialect is not None and dialect.gives_all and part.signature.is_open:
        part.supplied = {*INJECTED} - {*part.arguments}
    if part is not None and "priority" in part.settings:
        try:  # Checked here, because later its line would not be known.
            Priority.parse(cast("int | str", part.settings["priority"]))
        except HookError as error:
            reader.report((*written.arguments_key, "priority"), str(error))
    return part


def _other_systems(
    name: str, make: Callable[..., object], arguments: Mapping[str, object]
) -> dict[str, str]:
    """Explain arguments that our hook lacks, and a hook of the same name in a dialect has."""
    ours = Signature.of(make)
    unknown = [one for one in arguments if ours.unknown(one) and one not in SETTINGS]
    # Only for a mistake: a catalogue is imported when it is asked for a name.
    for system, path in (dialects.catalogued(name) if unknown else {}).items():
        theirs = Signature.of(cast("Callable[..., object]", locate(path)))
        if all(theirs.accepts(one) for one in unknown):
            hint = f" The {name} of {system} has it: add 'dialect: {system}'."
            return dict.fromkeys(unknown, hint)
    return {}


def _by_section(name: str, key: Key) -> str:
    """Return the path of a hook that several dialects have, where its section shows which."""
    # `in HOOKS` would reject a name that several dialects have.
    if "." in name or ":" in name or name in HOOKS.names() or dialects.registered(name):
        return name
    found = dialects.catalogued(name, str(key[0]))
    return next(iter(found.values())) if len(found) == 1 else name


def _look_in_dialect(reader: PartReader, written: Description) -> None:
    """Resolve a name in the catalogue of the dialect that is given with it."""
    try:
        names = named(str(written.arguments["dialect"])).catalogue()
    except HookError as error:
        reader.report((*written.arguments_key, "dialect"), str(error))
        return
    if isinstance(written.type, str):
        written.type = names.get(written.type, written.type)
