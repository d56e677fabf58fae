"""Arguments held against a signature, with the nearest right name in the message."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from hookloop.errors import ArgumentError, nearest
from hookloop.peers import translation

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_NO_NAMES: Mapping[str, str] = MappingProxyType({})


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
    ours = translation(name, peers)
    hint = f" Did you mean '{ours}'?" if ours is not None else nearest(name, known)
    takes = f" It takes {', '.join(known)}." if known else " It takes none."
    return f"{owner} has no argument '{name}'.{hint or takes}"


def check_names(
    make: Callable[..., object],
    args: Sequence[object],
    named: Mapping[str, object],
    peers: Mapping[str, str] = _NO_NAMES,
) -> None:
    """Reject arguments that a class does not have; those that are missing Python names itself.

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
            raise ArgumentError(f"{owner}{signature}: {error}.") from error
        raise ArgumentError(unknown_argument(owner, unknown, options, peers)) from error
