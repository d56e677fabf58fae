"""Whether a hook may request something in any iteration, as its code tells."""

from __future__ import annotations

from types import CodeType

from hookloop.beside import is_own

_REQUESTING = frozenset({"stop", "save", "validate", "stop_training", "save_checkpoint"})
"""How hooks request something: with the methods of a run, or with those of foreign systems."""


def may_request(hook: object) -> bool:
    """Return whether the code of a hook names a request, such as stop, save or validate.

    If it does, ranks meet after each iteration, so that what it requests is done in the same
    iteration as in one process. A request that is well hidden waits for the next meeting. Hooks of
    hookloop's own say themselves when a request is the same on all ranks.
    """
    own = [vars(hook), *(vars(kind) for kind in type(hook).__mro__)]
    if (foreign := getattr(hook, "foreign", None)) is not None:  # An adapter calls its methods.
        own += [vars(kind) for kind in type(foreign).__mro__]
    functions = (value for members in own for value in members.values() if callable(value))
    return any(
        _names_request(getattr(function, "__code__", None))
        for function in functions
        if not is_own(function)
    )


def _names_request(code: CodeType | None) -> bool:
    if code is None:
        return False
    inner = (one for one in code.co_consts if isinstance(one, CodeType))
    return not _REQUESTING.isdisjoint(code.co_names) or any(map(_names_request, inner))
