"""Resolve and check the objects that a config describes, without building them.

A mapping with a ``type`` becomes a `Part`: what to call, and its arguments, which may be parts
themselves. All problems are collected, so that a config can be fixed in one go.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import FunctionType, MappingProxyType
from typing import Literal, TypeGuard, cast

from yaml import YAMLError

from hookloop.config import registry as registries
from hookloop.config.locate import describe, locate
from hookloop.config.parts.signature import Signature, Unknown, convert, members
from hookloop.config.reading.yaml_file import parse_value
from hookloop.config.registry import Registry
from hookloop.config.tree import Config, Key, is_on_command_line, spell
from hookloop.errors import ConfigError, HookloopError, Problem, nearest

TYPE = "type"
REFERENCE = "ref"
AUTO = "auto"

LENGTHS = ("total_steps", "T_max", "total_iters", "epochs", "steps_per_epoch")
"""Arguments of schedules that can be ``auto``: they follow from the length of the run."""


@dataclass
class Part:
    """One object to build.

    Attributes:
        key: Its key in the config.
        make: The class or function.
        signature: What ``make`` can be called with.
        arguments: The checked arguments; values may hold further parts.
        supplied: Names of further arguments, which `build` adds.
        way: ``call`` it, ``use`` the function itself, or ``bind`` arguments to the function.
        settings: Attributes to set on the object after it is built.
    """

    key: Key
    make: Callable[..., object]
    signature: Signature
    arguments: dict[str, object] = field(default_factory=dict)
    supplied: Collection[str] = ()
    way: Literal["call", "use", "bind"] = "call"
    settings: dict[str, object] = field(default_factory=dict)


@dataclass
class Description:
    """A part as it is written: its type, its arguments, and their keys.

    Attributes:
        hints: What to add to the message about an argument that does not exist.
    """

    key: Key
    type: object
    type_key: Key
    arguments: dict[str, object] = field(default_factory=dict)
    arguments_key: Key = ()
    hints: dict[str, str] = field(default_factory=dict)


class PartReader:
    """Turns nodes of a config into parts, and collects the problems."""

    def __init__(self, config: Config) -> None:
        self.config = config
        # A copy, because the same config may be checked several times.
        self.problems: list[Problem] = list(config.problems)
        self.causes: list[Exception] = []

    def report(self, key: Key, message: str, cause: Exception | None = None) -> None:
        """Add a problem of a node; the same one is added only once."""
        problem = Problem(f"{spell(key)}: {message}" if key else message, self.config.where(key))
        # A hook is resolved twice, once to find its dialect: the second time says nothing new.
        if problem not in self.problems:
            self.problems.append(problem)
            if cause is not None:
                self.causes.append(cause)

    def raise_problems(self) -> None:
        """Raise all problems as one error; its cause is what user code raised during import."""
        if not self.problems:
            return
        error = ConfigError(sorted(self.problems, key=_order_of))
        # Chained, so that --traceback shows where the user's own code failed.
        if len(self.causes) > 1:
            raise error from ExceptionGroup("while importing what the config names", self.causes)
        raise error from (self.causes[0] if self.causes else None)

    def describe(self, key: Key, value: object) -> Description | None:
        """Read how a part is written: ``Name``, ``{type: Name, ...}``, or the class itself."""
        if isinstance(value, str) or callable(value):
            return Description(key, value, key, {}, key)
        if not isinstance(value, dict):
            self.report(key, f"expected a type or a mapping with 'type', got {value!r}.")
            return None
        arguments = dict(value)
        if TYPE not in arguments:
            hint = nearest(TYPE, arguments) or f" Write {{type: ..., {', '.join(arguments)}}}."
            self.report(key, f"a mapping that describes an object needs 'type'.{hint}")
            return None
        return Description(key, arguments.pop(TYPE), (*key, TYPE), arguments, key)

    def part(
        self, key: Key, value: object, registry: Registry[object], supplied: Collection[str] = ()
    ) -> object:
        """Read a part; what is already an object is returned as it is.

        Args:
            key: Its key.
            value: The value at that key.
            registry: Where its name is looked up.
            supplied: Arguments that `build` adds, so they may be missing here.
        """
        if is_object(value):
            return value
        written = self.describe(key, value)
        return written and self.read(written, registry, supplied=supplied)

    def function(self, key: Key, value: object, registry: Registry[object]) -> object:
        """Read a part that has to be a function, such as a loss.

        A function without arguments is used as it is. With some of its arguments, they are bound to
        it. With all that it needs, it is a factory, and is called.
        """
        part = self.part(key, value, registry, supplied=_ANYTHING)
        if not isinstance(part, Part):
            return part
        missing = part.signature.missing(part.arguments)
        # A class is always called: its instance is the function.
        if isinstance(part.make, type):
            self._report_missing(part, missing)
        elif not part.arguments:
            part.way = "use"
        elif missing:
            part.way = "bind"
        return part

    def read(
        self,
        written: Description,
        registry: Registry[object],
        *,
        supplied: Collection[str] = (),
        settings: Mapping[str, object] = MappingProxyType({}),
    ) -> Part | None:
        """Resolve a description's type and check its arguments against the signature.

        Args:
            written: The part as it is written.
            registry: Where the type is looked up.
            supplied: Arguments that `build` adds, so they may be missing here.
            settings: Names, with their types, that may be written among the arguments and are set
                on the object later, unless the constructor has a parameter of that name.
        """
        make = self.resolve(written.type_key, written.type, registry)
        if make is None:
            return None
        part = Part(written.key, make, Signature.of(make))
        at = written.arguments_key
        for name, value in written.arguments.items():
            key = (*at, name)  # Of the argument itself: its line may be far from that of the type.
            unknown = part.signature.unknown(name)
            if name in settings and not part.signature.accepts(name):
                part.settings[name] = self.plain(key, value, settings[name])
            elif unknown:
                hint = written.hints.get(name) or self._inherited(key, written.type_key)
                self.report(key, unknown + hint)
            else:
                annotation = part.signature.annotations.get(name, Unknown)
                part.arguments[name] = self.value(key, value, annotation, registry)
        # For a function, any may be missing: `function` decides what that means.
        if supplied is not _ANYTHING:
            named = {name for name in supplied if part.signature.accepts(name)}
            part.supplied = named - {*written.arguments}
            self._report_missing(part, part.signature.missing({*written.arguments, *named}))
        return part

    def resolve(
        self, key: Key, named: object, registry: Registry[object]
    ) -> Callable[..., object] | None:
        """Return the class or function that a type names."""
        if _is_reference(named):
            named = self._reference((*key, REFERENCE), named[REFERENCE])
        if callable(named):
            return cast("Callable[..., object]", named)
        if not isinstance(named, str):
            self.report(
                key, f"'type' is a name or a path such as package.module:Name, not {named!r}."
            )
            return None
        try:
            return registry.get(named)
        except HookloopError as error:
            cause = error.__cause__
            self.report(key, str(error), cause if isinstance(cause, Exception) else None)
            return None

    def value(
        self, key: Key, value: object, annotation: object, registry: Registry[object]
    ) -> object:
        """Check one argument, reading the parts in it; ``registry`` is that of its owner."""
        in_schedule = registry is registries.SCHEDULES
        if in_schedule and isinstance(value, str) and value == AUTO and key[-1] in LENGTHS:
            return value
        if isinstance(value, dict) and not _wants_mapping(annotation):
            if _is_reference(value):
                return self._reference((*key, REFERENCE), value[REFERENCE])
            if TYPE in value:
                # A schedule made of schedules: each of them drives the same optimizer.
                supplied = ("optimizer",) if in_schedule else ()
                return self.part(key, value, _registry_of(value[TYPE], registry), supplied)
        if isinstance(value, dict | list) and _holds_parts(value):
            items = value.items() if isinstance(value, dict) else enumerate(value)
            read = {name: self.value((*key, name), item, Unknown, registry) for name, item in items}
            return read if isinstance(value, dict) else list(read.values())
        return self.plain(key, value, annotation)

    def plain(self, key: Key, value: object, annotation: object) -> object:
        """Check a value that holds no parts against its annotation."""
        try:
            return convert(value, annotation)
        except ValueError as error:
            # A reference that is still there leads nowhere, which is reported already.
            if isinstance(value, str) and "${" in value:
                return value
            hint = _unquoted(value, annotation)
            if isinstance(value, str) and "Callable" in str(annotation):
                hint = f" To pass a function, write {{ref: {value}}}."
            self.report(key, f"{error}{hint}")
            return value

    def is_removed(self, key: Key, value: object, names: Collection[object] = ()) -> bool:
        """Return whether null removes an entry; null with nothing to remove is reported."""
        if value is not None:
            return False
        # In a Python file, None may be the result of a condition, so it is not a mistake.
        is_free = self.config.path.suffix == ".py" and not self.config.is_override(key)
        if key not in self.config.removed and not is_free:
            name = str(key[-1])
            others = [str(other) for other in names if str(other) != name]
            what = "nothing" if name.isdigit() else f"no '{name}'"
            self.report(key, f"there is {what} to remove.{nearest(name, others)}")
        return True

    def resolve_objects(self, names: Collection[str], within: Key = ()) -> None:
        """Replace ``{ref: module:name}`` by the object, wherever a part may be an object.

        Args:
            names: Keys of the config, or of a mapping in it.
            within: The key of that mapping.
        """
        tree = cast("dict[str, object]", self.config.at(within))
        for name in names:
            value = tree.get(name)
            if _is_reference(value):
                tree[name] = self._object((*within, name), value)
            elif isinstance(value, dict | list):
                # Deeper ones are arguments, which `value` resolves.
                inside = list(value.items() if isinstance(value, dict) else enumerate(value))
                for step, item in inside:
                    if _is_reference(item):
                        value[step] = self._object((*within, name, step), item)

    def _object(self, key: Key, reference: dict[str, object]) -> object:
        path = reference[REFERENCE]
        found = self._reference((*key, REFERENCE), path)
        self.config.origins[id(found)] = str(path)
        return found

    def _reference(self, key: Key, path: object) -> object:
        if not isinstance(path, str):
            return path
        try:
            return locate(path)
        except HookloopError as error:
            self.report(key, str(error))
        except Exception as error:  # noqa: BLE001 - reported with its cause
            self.report(key, f"'{path}' could not be imported: {describe(error)}", error)
        return None

    def _report_missing(self, part: Part, missing: list[str]) -> None:
        if missing:
            names = " and ".join(f"'{name}'" for name in missing)
            self.report(part.key, f"{part.signature.name} needs {names}.")

    def _inherited(self, key: Key, type_key: Key) -> str:
        """Explain an argument that came from a base, although a child changed the type."""
        origin = (self.config.where(key) or "").rpartition(":")[0]
        changed = (self.config.where(type_key) or "").rpartition(":")[0]
        if origin in ("", changed, self.config.where(())) or is_on_command_line(origin):
            return ""
        return f" It was merged in from {origin}: '_delete_: true' beside 'type' prevents that."


# For a function, any argument may be missing: it gets the others when it is called.
_ANYTHING: Collection[str] = frozenset({"*"})


def _order_of(problem: Problem) -> tuple[bool, str, int]:
    """Return a sort key: file by file from the top, the command line last."""
    where = problem.where or ""
    if is_on_command_line(where):
        return True, "", 0
    file, _, line = where.rpartition(":")
    return (False, file, int(line)) if line.isdigit() else (False, where, 0)


def _registry_of(named: object, owner: Registry[object]) -> Registry[object]:
    """Return where to look up a nested type: the registry of its owner, or else one that has it."""
    others = (
        registries.MODELS,
        registries.DATA,
        registries.LOSSES,
        registries.SCHEDULES,
        registries.OPTIMIZERS,
        registries.METRICS,
    )
    for registry in (owner, *others):
        if isinstance(named, str) and named in registry:
            return registry
    return owner


def is_object(value: object) -> bool:
    """Return whether a value of a Python config is an object, not a description of one."""
    if isinstance(value, list | tuple):
        # A list of batches, or of hooks that a Python config has made.
        return any(is_object(item) for item in value)
    plain = (bool, int, float, str, dict, type, FunctionType)
    return value is not None and not isinstance(value, plain)


def _is_reference(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict) and set(value) == {REFERENCE}


def _wants_mapping(annotation: object) -> bool:
    """Return whether a parameter takes a mapping itself, not the object that it describes."""
    # `dict[str, int]` is not a class; its origin, `dict`, is.
    origins = [getattr(member, "__origin__", member) for member in members(annotation)]
    return any(isinstance(origin, type) and issubclass(origin, Mapping) for origin in origins)


def _unquoted(value: object, annotation: object) -> str:
    """Suggest to remove the quotes if the value is valid without them."""
    if not isinstance(value, str):
        return ""
    try:
        meant = parse_value(value)
        if meant != value:
            convert(meant, annotation)
            return f" Write {value}, without quotes."
    except (ValueError, YAMLError):
        pass
    return ""


def _holds_parts(value: object) -> bool:
    if isinstance(value, dict):
        inside = TYPE in value or set(value) == {REFERENCE}
        return inside or any(_holds_parts(item) for item in value.values())
    return isinstance(value, list) and any(_holds_parts(item) for item in value)
