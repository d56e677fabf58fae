"""Arguments held against a signature, with the nearest right name in the message."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from os import PathLike
from types import MappingProxyType

from hookloop.errors import ArgumentError, nearest
from hookloop.peers import translation

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_NO_NAMES: Mapping[str, str] = MappingProxyType({})

_KINDS: dict[str, str] = {
    "None": "None",
    "bool": "True or False",
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "Path": "a path",
    "Sequence[str]": "a list of names",
}
"""The annotations that a value is checked against, with how messages put them."""


def unknown_argument(
    owner: str, name: str, options: Iterable[str], peers: Mapping[str, str] = _NO_NAMES
) -> str:
    """Word that something has no argument of a name.

    Args:
        owner: What is called.
        name: The argument that it does not have.
        options: Those that it has.
        peers: What others call them; see `hookloop.peers`.

    >>> unknown_argument("StopAfter", "epoch", ["epochs", "minutes"])
    "StopAfter has no argument 'epoch'. Did you mean 'epochs'?"
    """
    known = list(options)
    ours = translation(name, peers, known)
    hint = f" Did you mean '{ours}'?" if ours is not None else nearest(name, known)
    takes = f" It takes {', '.join(known)}." if known else " It takes none."
    return f"{owner} has no argument '{name}'.{hint or takes}"


def check_names(
    make: Callable[..., object],
    args: Sequence[object],
    named: Mapping[str, object],
    peers: Mapping[str, str] = _NO_NAMES,
    advice: Mapping[str, str] = _NO_NAMES,
) -> None:
    """Reject arguments that something does not have; those that are missing Python names itself.

    Args:
        make: What is called.
        args: Arguments by position.
        named: Arguments by name.
        peers: What others call the arguments.
        advice: What to do instead, by names that others give to what is no argument here.

    Raises:
        ArgumentError: With the nearest name.
    """
    signature = inspect.signature(make)
    try:
        signature.bind_partial(*args, **named)
    except TypeError as error:
        options = [one.name for one in signature.parameters.values() if one.kind in _NAMED]
        owner = getattr(make, "__name__", "")
        unknown = next((name for name in named if name not in options), None)
        if unknown is None:
            raise ArgumentError(_by_position(owner, signature, args, error)) from error
        instead = next((what for what, names in advice.items() if unknown in names.split()), None)
        if instead is not None:
            message = f"{owner} has no argument '{unknown}': {instead}."
        else:
            message = unknown_argument(owner, unknown, options, peers)
        raise ArgumentError(message) from error


def check_values(
    make: Callable[..., object], args: Sequence[object], named: Mapping[str, object]
) -> None:
    """Reject values that are not of the plain type that an argument is annotated with.

    Only numbers, text, paths and lists of names are checked; anything else is up to the callee.

    Raises:
        ArgumentError: With what the argument takes.
    """
    signature = inspect.signature(make)
    owner = getattr(make, "__name__", "")
    for name, value in signature.bind_partial(*args, **named).arguments.items():
        parameter = signature.parameters[name]
        kinds = _plain_kinds(parameter.annotation)
        if parameter.kind in _NAMED and kinds and not any(_is_a(value, kind) for kind in kinds):
            wanted = " or ".join(_KINDS[kind] for kind in kinds)
            raise ArgumentError(f"{owner}: {name}={value!r} must be {wanted}.{_cure(value, kinds)}")


def missing_attribute(owner: object, name: str, peers: Mapping[str, str]) -> AttributeError:
    """Return the error of an attribute that is not there, with ours for a name of others.

    Args:
        owner: The object.
        name: What it does not have.
        peers: What others call its attributes.
    """
    hint = ""
    if not name.startswith("__"):  # Python itself asks for those.
        ours = translation(name, peers)
        public = [one for one in dir(owner) if not one.startswith("_")]
        hint = f" It is {ours}." if ours is not None else nearest(name, public)
    kind = type(owner).__name__
    # Without the name, since Python would add a guess of its own.
    return AttributeError(f"'{kind}' object has no attribute '{name}'.{hint}", name=None)


def missing_name(module: str, name: str, ours: str | None, options: Iterable[str]) -> Exception:
    """Return the error of a name that a module does not have.

    Args:
        module: The module.
        name: What it does not have.
        ours: The import to write instead, if that is known.
        options: The names that it has.
    """
    message = f"module '{module}' has no attribute '{name}'."
    if ours is None:
        return AttributeError(f"{message}{nearest(name, options)}", name=None)
    # `from module import name` would replace an AttributeError by one without the hint.
    return ImportError(f"{message} Write {ours}.", name=module)


def _plain_kinds(annotation: object) -> list[str]:
    """List the members of a union if each can be checked."""
    if not isinstance(annotation, str):
        annotation = getattr(annotation, "__name__", "")
    members = re.split(r"\s*\|\s*", str(annotation))
    return members if all(member in _KINDS for member in members) else []


def _is_a(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "bool"
    if kind == "Sequence[str]":
        is_list = isinstance(value, Iterable) and not isinstance(value, str | Mapping)
        return is_list and (
            not isinstance(value, Sequence) or all(isinstance(one, str) for one in value)
        )
    types: dict[str, type | tuple[type, ...]] = {
        "None": type(None), "int": Integral, "float": Real, "str": str, "Path": PathLike,
    }  # fmt: skip
    return kind != "bool" and isinstance(value, types[kind])


def _cure(value: object, kinds: Sequence[str]) -> str:
    """Write the value as it was meant, if that can be told."""
    if isinstance(value, str) and "Sequence[str]" in kinds:
        return f" Write [{value!r}]."
    if isinstance(value, str | float) and ("int" in kinds or "float" in kinds):
        try:
            number = float(value)
        except ValueError:
            return ""
        if number.is_integer() or "float" in kinds:
            return f" Write {int(number) if number.is_integer() else number}."
    return ""


def _by_position(
    owner: str, signature: inspect.Signature, args: Sequence[object], error: TypeError
) -> str:
    """Word that an argument has to be given by its name."""
    by_position = [
        one.name for one in signature.parameters.values() if one.kind is not one.KEYWORD_ONLY
    ]
    by_name = [one.name for one in signature.parameters.values() if one.kind is one.KEYWORD_ONLY]
    if len(args) <= len(by_position):
        return f"{owner}: {error}."
    takes = (
        f"only '{by_position[-1]}'" if len(by_position) == 1 else f"{len(by_position)} arguments"
    )
    if not by_position:
        takes = "no argument"
    named = f" Name the others: {by_name[0]}=..." if by_name else ""
    return f"{owner} takes {takes} by position, not {len(args)}.{named}"
