"""Check arguments against a signature, with the nearest right name in the message."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from os import PathLike
from types import MappingProxyType

from hookloop.errors import ArgumentError, nearest
from hookloop.peers import REMARKS, translation

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
"""The annotations that values are checked against, and their wording in messages."""


def unknown_argument(
    owner: str, name: str, options: Iterable[str], peers: Mapping[str, str] = _NO_NAMES
) -> str:
    """Return the message for an argument that does not exist.

    Args:
        owner: The name of the class or function that is called.
        name: The argument that it does not have.
        options: The arguments that it has.
        peers: Names that other libraries use for them; see `hookloop.peers`.

    >>> unknown_argument("StopAfter", "epoch", ["epochs", "minutes"])
    "StopAfter has no argument 'epoch'. Did you mean 'epochs'?"
    """
    names = list(options)
    # The name of another library comes first: 'monitor' is spelled nothing like our 'metric'.
    ours = translation(name, peers, names)
    hint = f" Did you mean '{ours}'?" if ours is not None else nearest(name, names)
    remark = translation(name, REMARKS) if ours is not None else None
    hint += f" {remark}" if remark is not None else ""
    takes = f" It takes {', '.join(names)}." if names else " It takes none."
    return f"{owner} has no argument '{name}'.{hint or takes}"


def check_names(
    make: Callable[..., object],
    args: Sequence[object],
    named: Mapping[str, object],
    peers: Mapping[str, str] = _NO_NAMES,
    advice: Mapping[str, str] = _NO_NAMES,
) -> None:
    """Reject arguments that a callable does not have. Missing ones are left to Python's own error.

    Args:
        make: The class or function that is called.
        args: Arguments by position.
        named: Arguments by name.
        peers: Names that other libraries use for the arguments.
        advice: What to do instead, with the names of arguments that exist only in other libraries.

    Raises:
        ArgumentError: With the nearest name.
    """
    signature = inspect.signature(make)
    try:
        signature.bind_partial(*args, **named)
    except TypeError as error:
        parameters = signature.parameters.values()
        options = [parameter.name for parameter in parameters if parameter.kind in _NAMED]
        owner = getattr(make, "__name__", "")  # A partial has no name.
        unknown = next((name for name in named if name not in options), None)
        # Every name exists, so there are too many by position, or one is given twice.
        if unknown is None:
            raise ArgumentError(_describe_excess(owner, signature, args, error)) from error
        instead = next((what for what, names in advice.items() if unknown in names.split()), None)
        if instead is not None:
            message = f"{owner} has no argument '{unknown}': {instead}."
        else:
            message = unknown_argument(owner, unknown, options, peers)
        raise ArgumentError(message, argument=unknown) from error


def check_values(
    make: Callable[..., object], args: Sequence[object], named: Mapping[str, object]
) -> None:
    """Reject values whose type does not match the annotation of their argument.

    Only numbers, text, paths and lists of names are checked. Everything else is up to the callee.

    Raises:
        ArgumentError: With the type that the argument takes.
    """
    signature = inspect.signature(make)
    owner = getattr(make, "__name__", "")
    for name, value in signature.bind_partial(*args, **named).arguments.items():
        parameter = signature.parameters[name]
        kinds = _plain_kinds(parameter.annotation)
        # *args and **kwargs hold several values, while their annotation describes each of them.
        if parameter.kind in _NAMED and kinds and not any(_is_a(value, kind) for kind in kinds):
            wanted = " or ".join(_KINDS[kind] for kind in kinds)
            raise ArgumentError(
                f"{owner}: {name}={value!r} must be {wanted}.{_suggest(value, kinds)}",
                argument=name,
            )


def missing_attribute(owner: object, name: str, peers: Mapping[str, str]) -> AttributeError:
    """Return the error for an attribute that does not exist, with a hint at the right one.

    Args:
        owner: The object.
        name: The attribute that it does not have.
        peers: Names that other libraries use for its attributes.
    """
    hint = ""
    # Python itself asks for dunder names, to copy or pickle the object: nobody misspelled them.
    if not name.startswith("__"):
        ours = translation(name, peers)
        public = [attribute for attribute in dir(owner) if not attribute.startswith("_")]
        hint = f" It is {ours}." if ours is not None else nearest(name, public)
    kind = type(owner).__name__
    # With `name=`, Python would append a suggestion of its own to the traceback.
    return AttributeError(f"'{kind}' object has no attribute '{name}'.{hint}", name=None)


def missing_name(module: str, name: str, ours: str | None, options: Iterable[str]) -> Exception:
    """Return the error for a name that a module does not have.

    Args:
        module: The module.
        name: The name that it does not have.
        ours: The import to write instead, if it is known.
        options: The names that it has.
    """
    message = f"module '{module}' has no attribute '{name}'."
    if ours is None:
        return AttributeError(f"{message}{nearest(name, options)}", name=None)
    # `from module import name` would replace an AttributeError by one without the hint.
    return ImportError(f"{message} Write {ours}.", name=module)


def _plain_kinds(annotation: object) -> list[str]:
    """Return the members of a union if all of them can be checked, else an empty list."""
    # Our modules postpone annotations, so they arrive as text, which is never evaluated here:
    # that would import what only type checkers need.
    if not isinstance(annotation, str):
        annotation = getattr(annotation, "__name__", "")
    members = re.split(r"\s*\|\s*", str(annotation))
    return members if all(member in _KINDS for member in members) else []


def _is_a(value: object, kind: str) -> bool:
    if isinstance(value, bool):  # A bool is an int to Python, but `epochs=True` is a mistake.
        return kind == "bool"
    if kind == "Sequence[str]":
        # A text is iterable too: its letters would pass for names. What is not a sequence may be a
        # generator, which looking at its items would use up.
        is_list = isinstance(value, Iterable) and not isinstance(value, str | Mapping)
        return is_list and (
            not isinstance(value, Sequence) or all(isinstance(one, str) for one in value)
        )
    # The abstract types, because numbers of NumPy are neither int nor float.
    types: dict[str, type | tuple[type, ...]] = {
        "None": type(None), "int": Integral, "float": Real, "str": str, "Path": PathLike,
    }  # fmt: skip
    return kind != "bool" and isinstance(value, types[kind])


def _suggest(value: object, kinds: Sequence[str]) -> str:
    """Return how the value should be written, if that can be guessed."""
    if isinstance(value, str) and "Sequence[str]" in kinds:
        return f" Write [{value!r}]."
    if isinstance(value, str | float) and ("int" in kinds or "float" in kinds):
        try:
            number = float(value)
        except ValueError:
            return ""
        # Infinity and NaN are not integers to `is_integer`, so `int` cannot fail.
        if number.is_integer() or "float" in kinds:
            return f" Write {int(number) if number.is_integer() else number}."
    return ""


def _describe_excess(
    owner: str, signature: inspect.Signature, args: Sequence[object], error: TypeError
) -> str:
    """Return the message for too many arguments by position."""
    parameters = signature.parameters.values()
    by_position = [one.name for one in parameters if one.kind is not one.KEYWORD_ONLY]
    by_name = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
    # Python's own message is right here: an argument is given by position and by name.
    if len(args) <= len(by_position):
        return f"{owner}: {error}."
    takes = (
        f"only '{by_position[-1]}'" if len(by_position) == 1 else f"{len(by_position)} arguments"
    )
    if not by_position:
        takes = "no argument"
    named = f" Name the others: {by_name[0]}=..." if by_name else ""
    return f"{owner} takes {takes} by position, not {len(args)}.{named}"


# Names with capitals inside a word, which would otherwise be split there; and where words meet.
_SPELLED = {"ClearML": "Clearml", "MLflow": "Mlflow", "NaN": "Nan", "TensorBoard": "Tensorboard"}
_WORD_BREAK = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake_case(name: str) -> str:
    """Turn a class name into the name of its hook, which is also the name of its file.

    >>> snake_case("WriteCSV"), snake_case("StopOnNaN")
    ('write_csv', 'stop_on_nan')
    """
    for spelled, plain in _SPELLED.items():
        name = name.replace(spelled, plain)
    return _WORD_BREAK.sub("_", name).lower()
