"""Check arguments against a signature before anything is called: unknown, missing, wrong type."""

from __future__ import annotations

import builtins
import inspect
import json
import types
import typing
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from hookloop.arguments import unknown_argument
from hookloop.every import Every
from hookloop.peers import PART_ARGUMENTS
from hookloop.secret import Secret

if typing.TYPE_CHECKING:
    from pydantic import TypeAdapter

Unknown = inspect.Parameter.empty
"""The annotation of a parameter without one."""


@dataclass(frozen=True)
class Signature:
    """What a class or function can be called with.

    Attributes:
        name: The name of the class or function, as messages show it.
        annotations: The annotations of the parameters that can be given by name.
        required: The names without which a call fails.
        star: The name of ``*args``, if there is one; a config gives it as a list.
        is_open: Whether any other name is accepted (``**kwargs``, or an unknown signature).
    """

    name: str
    annotations: Mapping[str, object]
    required: tuple[str, ...] = ()
    star: str | None = None
    is_open: bool = False

    @classmethod
    def of(cls, factory: Callable[..., object]) -> Signature:
        """Read a signature; a callable that has none accepts everything."""
        name = getattr(factory, "__name__", type(factory).__name__)
        try:
            parameters = inspect.signature(factory).parameters
        except (TypeError, ValueError):  # Some callables written in C have no signature.
            return cls(name, {}, is_open=True)
        by_kind: dict[object, list[inspect.Parameter]] = {}
        for parameter in parameters.values():
            by_kind.setdefault(parameter.kind, []).append(parameter)
        named = [
            *by_kind.get(inspect.Parameter.POSITIONAL_OR_KEYWORD, []),
            *by_kind.get(inspect.Parameter.KEYWORD_ONLY, []),
        ]
        star = by_kind.get(inspect.Parameter.VAR_POSITIONAL)
        return cls(
            name,
            {parameter.name: _evaluate(parameter.annotation, factory) for parameter in named},
            tuple(parameter.name for parameter in named if parameter.default is Unknown),
            star[0].name if star else None,
            inspect.Parameter.VAR_KEYWORD in by_kind,
        )

    def accepts(self, name: str) -> bool:
        """Return whether the signature has a parameter with this name."""
        return name in self.annotations

    def unknown(self, name: str) -> str | None:
        """Return the message for an argument that does not exist, or None if it does."""
        if self.is_open or name in self.annotations or name == self.star:
            return None
        options = [*self.annotations, *([self.star] if self.star else [])]
        return unknown_argument(self.name, name, options, PART_ARGUMENTS)

    def missing(self, names: Collection[str]) -> list[str]:
        """Return the required names that are not among ``names``."""
        return [name for name in self.required if name not in names]


def convert(value: object, annotation: object) -> object:
    """Check a plain value against an annotation and return it in that type.

    A whole number fits a float, ``1e5`` fits an int, a list fits a tuple. Text never fits a number,
    and a boolean is not a number. A value that cannot be checked is accepted.

    >>> convert([0.9, 1], tuple[float, float])
    (0.9, 1.0)
    >>> convert("3", int)
    Traceback (most recent call last):
    ValueError: expected int, got '3'.
    """
    if annotation is Unknown or not _is_plain(value):
        return value
    # In `float | Tensor`, a config can only mean the float.
    candidates = members(annotation)
    candidates = tuple(one for one in candidates if not _is_object_type(one)) or candidates
    # An interval is kept as text, as the written config shows it again.
    # A mapping has one for each of several things, whose owner reads them.
    if Every in candidates and value is not None and not isinstance(value, dict):
        Every.parse(typing.cast("str", value))
        return value
    # As written first, so that 3.0 stays a float for `float | int`.
    for attempt in (value, int(value) if _is_whole(value) else value):
        text = json.dumps(attempt)
        for member in candidates:
            fits, converted = _fits(member, text)
            if fits:
                return _keep_secrets(value, converted) if converted is not _UNCHECKED else value
    expected = " | ".join(spell_type(one) for one in candidates)
    raise ValueError(f"expected {expected}, got {value!r}.")


def _keep_secrets(value: object, converted: object) -> object:
    """Put the secrets of a value back into its converted copy, where they are plain text."""
    if isinstance(value, Secret):
        return value if converted == value else converted
    if isinstance(value, dict) and isinstance(converted, dict):
        return {
            name: _keep_secrets(value.get(name), item) if name in value else item
            for name, item in converted.items()
        }
    if isinstance(value, list) and type(converted) in (list, tuple):
        items = typing.cast("list[object]", converted)
        return type(items)(map(_keep_secrets, value, items))
    return converted


def spell_type(annotation: object) -> str:
    """Return an annotation as its author would write it.

    >>> spell_type(int | None), spell_type(typing.Optional[typing.List[int]])
    ('int | None', 'list[int] | None')
    """
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return " | ".join(spell_type(member) for member in typing.get_args(annotation))
    if typing.get_origin(annotation) is typing.Literal:
        return " or ".join(repr(choice) for choice in typing.get_args(annotation))
    if annotation in (None, types.NoneType):
        return "None"
    text = inspect.formatannotation(annotation)
    for prefix in ("typing.", "collections.abc.", "pathlib."):
        text = text.replace(prefix, "")
    return text.replace("List[", "list[").replace("Tuple[", "tuple[").replace("Dict[", "dict[")


def _evaluate(annotation: object, factory: Callable[..., object]) -> object:
    """Evaluate an annotation that ``from __future__ import annotations`` left as text."""
    if not isinstance(annotation, str):
        return annotation
    holder = factory.__init__ if isinstance(factory, type) else factory  # type: ignore[misc]
    # The names that the author of the annotation could use.
    space = {**vars(builtins), **getattr(inspect.unwrap(holder), "__globals__", {})}
    try:
        hints = typing.get_type_hints(
            types.SimpleNamespace(__annotations__={"it": annotation}), globalns=space
        )
    except (NameError, TypeError, AttributeError, SyntaxError):  # Imported for type checkers only.
        return Unknown
    return hints["it"]


def members(annotation: object) -> tuple[object, ...]:
    """Return the alternatives of a union, or the annotation alone."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return tuple(inner for member in typing.get_args(annotation) for inner in members(member))
    return (annotation,)


def _fits(annotation: object, text: str) -> tuple[bool, object]:
    """Return whether JSON text is a value of a type, and the value."""
    # As JSON, because in strict mode pydantic accepts a list for a tuple only from JSON.
    from pydantic import ValidationError

    adapter = _adapter(annotation)
    if adapter is None:
        return True, _UNCHECKED
    try:
        return True, adapter.validate_json(text, strict=True)
    except ValidationError:
        return False, None


def _is_object_type(annotation: object) -> bool:
    """Return whether a type has no plain values, like a tensor or a module."""
    return isinstance(annotation, type) and _adapter(annotation) is None


def _adapter(annotation: object) -> TypeAdapter[object] | None:
    """Return a validator, or None for a type that plain data cannot be checked against."""
    from pydantic import PydanticUserError, TypeAdapter
    from pydantic.errors import PydanticUndefinedAnnotation

    try:
        return TypeAdapter(annotation)  # type: ignore[arg-type]
    except (PydanticUserError, PydanticUndefinedAnnotation, TypeError, NameError):
        return None


def _is_plain(value: object) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if isinstance(value, list):
        return all(_is_plain(item) for item in value)
    return value is None or isinstance(value, bool | int | float | str)


def _is_whole(value: object) -> typing.TypeGuard[float]:
    return isinstance(value, float) and value.is_integer()


_UNCHECKED = object()
"""Stands for the converted value of a type that cannot be checked."""
