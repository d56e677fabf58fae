"""Objects that a config describes, resolved and checked, but not built.

A mapping with a ``type`` becomes a `Part`: what to call and with which arguments, which may be
parts themselves. All faults are collected, because a config is mended in one go.
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
from hookloop.config.tree import Config, Key, spell
from hookloop.errors import ConfigError, Fault, HookloopError, nearest

TYPE = "type"
REFERENCE = "ref"
AUTO = "auto"

LENGTHS = ("total_steps", "T_max", "total_iters", "epochs", "steps_per_epoch")
"""Arguments of schedules that can be ``auto``: they follow from the length of the run."""


@dataclass
class Part:
    """One object to build.

    Attributes:
        key: Where it stands in the config.
        make: The class or function.
        signature: What ``make`` can be called with.
        arguments: Checked; values may hold further parts.
        supplied: Names of further arguments, which building knows.
        way: ``call`` it, ``use`` the function itself, or ``bind`` arguments to the function.
        settings: What is set on the object after it is built.
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
    """A part as it is written: its type, its arguments, and where each of them stands."""

    key: Key
    type: object
    type_key: Key
    arguments: dict[str, object] = field(default_factory=dict)
    arguments_key: Key = ()


class PartReader:
    """Turns nodes of a config into parts, and collects what is wrong with them."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.faults: list[Fault] = list(config.faults)
        self.causes: list[Exception] = []

    def fault(self, key: Key, message: str, cause: Exception | None = None) -> None:
        """Note that something is wrong at a node; one message of one place is enough."""
        fault = Fault(f"{spell(key)}: {message}" if key else message, self.config.where(key))
        if fault not in self.faults:
            self.faults.append(fault)
            if cause is not None:
                self.causes.append(cause)

    def raise_faults(self) -> None:
        """Raise all faults as one error, caused by what user code raised while it was imported."""
        if not self.faults:
            return
        error = ConfigError(sorted(self.faults, key=_place_of))
        if len(self.causes) > 1:
            raise error from ExceptionGroup("while importing what the config names", self.causes)
        raise error from (self.causes[0] if self.causes else None)

    def describe(self, key: Key, value: object) -> Description | None:
        """Read how a part is written: ``Name``, ``{type: Name, ...}``, or the class itself."""
        if isinstance(value, str) or callable(value):
            return Description(key, value, key, {}, key)
        if not isinstance(value, dict):
            self.fault(key, f"expected a type or a mapping with 'type', got {value!r}.")
            return None
        arguments = dict(value)
        if TYPE not in arguments:
            hint = nearest(TYPE, arguments) or f" Write {{type: ..., {', '.join(arguments)}}}."
            self.fault(key, f"a mapping that describes an object needs 'type'.{hint}")
            return None
        return Description(key, arguments.pop(TYPE), (*key, TYPE), arguments, key)

    def part(
        self, key: Key, value: object, registry: Registry[object], supplied: Collection[str] = ()
    ) -> object:
        """Read a part; anything that is already an object is handed through.

        Args:
            key: Where it stands.
            value: What stands there.
            registry: Where its name is looked up.
            supplied: Arguments that building gives, so that they may be missing.
        """
        if is_object(value):
            return value
        written = self.describe(key, value)
        return written and self.read(written, registry, supplied=supplied)

    def function(self, key: Key, value: object, registry: Registry[object]) -> object:
        """Read a part that shall be a function, such as a loss.

        The name of a function stands for the function; with some of its arguments they are bound
        to it; with all that it needs it is called, since it is then a factory.
        """
        part = self.part(key, value, registry, supplied=_ANYTHING)
        if not isinstance(part, Part):
            return part
        missing = part.signature.missing(part.arguments)
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
            written: What the config says.
            registry: Where the type is looked up.
            supplied: Arguments that building gives, so that they may be missing.
            settings: With their types, what may stand among the arguments and is set on the object
                later, unless the constructor has a parameter of that name.
        """
        make = self.resolve(written.type_key, written.type, registry)
        if make is None:
            return None
        part = Part(written.key, make, Signature.of(make))
        at = written.arguments_key
        for name, value in written.arguments.items():
            key = (*at, name)
            unknown = part.signature.unknown(name)
            if name in settings and not part.signature.accepts(name):
                part.settings[name] = self.plain(key, value, settings[name])
            elif unknown:
                self.fault(key, unknown + self._inherited(key, written.type_key))
            else:
                annotation = part.signature.annotations.get(name, Unknown)
                part.arguments[name] = self.value(key, value, annotation, registry)
        if supplied is not _ANYTHING:
            named = {name for name in supplied if part.signature.accepts(name)}
            part.supplied = named - {*written.arguments}
            self._report_missing(part, part.signature.missing({*written.arguments, *named}))
        return part

    def resolve(
        self, key: Key, named: object, registry: Registry[object]
    ) -> Callable[..., object] | None:
        """Find the class or function that a type names."""
        if _is_reference(named):
            named = self._reference((*key, REFERENCE), named[REFERENCE])
        if callable(named):
            return cast("Callable[..., object]", named)
        if not isinstance(named, str):
            self.fault(
                key, f"'type' is a name or a path such as package.module:Name, not {named!r}."
            )
            return None
        try:
            return registry.get(named)
        except HookloopError as error:
            cause = error.__cause__
            self.fault(key, str(error), cause if isinstance(cause, Exception) else None)
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
                return self.part(key, value, _home(value[TYPE], registry), supplied)
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
            if (
                isinstance(value, str) and "${" in value
            ):  # That it leads nowhere is a fault already.
                return value
            hint = _unquoted(value, annotation)
            if isinstance(value, str) and "Callable" in str(annotation):
                hint = f" To pass a function, write {{ref: {value}}}."
            self.fault(key, f"{error}{hint}")
            return value

    def is_removed(self, key: Key, value: object, known: Collection[object] = ()) -> bool:
        """Return whether null stands at a name; where nothing was to be removed it is a fault."""
        if value is not None:
            return False
        is_free = self.config.path.suffix == ".py" and not self._is_override(key)
        if key not in self.config.removed and not is_free:
            name = str(key[-1])
            others = [str(one) for one in known if str(one) != name]
            what = "nothing" if name.isdigit() else f"no '{name}'"
            self.fault(key, f"there is {what} to remove.{nearest(name, others)}")
        return True

    def _is_override(self, key: Key) -> bool:
        return (self.config.where(key) or "").startswith("command line")

    def resolve_objects(self, names: Collection[str]) -> None:
        """Replace ``{ref: module:name}`` by the object that it names, where a part may be one."""
        tree = self.config.tree
        for name in names:
            value = tree.get(name)
            if _is_reference(value):
                tree[name] = self._object((name,), value)
            elif isinstance(value, dict | list):
                inside = list(value.items() if isinstance(value, dict) else enumerate(value))
                for step, item in inside:
                    if _is_reference(item):
                        value[step] = self._object((name, step), item)

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
            self.fault(key, str(error))
        except Exception as error:  # noqa: BLE001 - reported with its cause
            self.fault(key, f"'{path}' could not be imported: {describe(error)}", error)
        return None

    def _report_missing(self, part: Part, missing: list[str]) -> None:
        if missing:
            names = " and ".join(f"'{name}'" for name in missing)
            self.fault(part.key, f"{part.signature.name} needs {names}.")

    def _inherited(self, key: Key, type_key: Key) -> str:
        """Explain an argument that a base left behind when a child changed the type."""
        origin = (self.config.where(key) or "").rpartition(":")[0]
        changed = (self.config.where(type_key) or "").rpartition(":")[0]
        if origin in ("", changed, self.config.where(())) or origin.startswith("command line"):
            return ""
        return f" It was merged in from {origin}: '_delete_: true' beside 'type' prevents that."


_ANYTHING: Collection[str] = frozenset({"*"})


def _place_of(fault: Fault) -> tuple[bool, str, int]:
    """Order faults as one would mend them: file by file from the top, the command line last."""
    where = fault.where or ""
    if where.startswith("command line"):
        return True, "", 0
    file, _, line = where.rpartition(":")
    return (False, file, int(line)) if line.isdigit() else (False, where, 0)


def _home(named: object, owner: Registry[object]) -> Registry[object]:
    """Choose where to look a nested type up: where its owner is from, else where it is known."""
    others = (
        registries.MODELS,
        registries.DATA,
        registries.LOSSES,
        registries.SCHEDULES,
        registries.OPTIMIZERS,
        registries.METRICS,
    )
    for home in (owner, *others):
        if isinstance(named, str) and named in home:
            return home
    return owner


def is_object(value: object) -> bool:
    """Tell whether a value of a Python config is the thing itself, rather than its description."""
    if isinstance(value, list | tuple):
        return any(is_object(item) for item in value)
    plain = (bool, int, float, str, dict, type, FunctionType)
    return value is not None and not isinstance(value, plain)


def _is_reference(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict) and set(value) == {REFERENCE}


def _wants_mapping(annotation: object) -> bool:
    """Tell whether a parameter asks for a mapping as it is, rather than for what it describes."""
    origins = [getattr(member, "__origin__", member) for member in members(annotation)]
    return any(isinstance(origin, type) and issubclass(origin, Mapping) for origin in origins)


def _unquoted(value: object, annotation: object) -> str:
    """Suggest to leave quotes away where that makes the value fit."""
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
