"""Checks of hooks before they run on many ranks: what would hang, or write one file several times.

They look at the names that the code of a hook uses. That finds the usual mistakes before they cost
a training; what is well hidden is not found.
"""

from __future__ import annotations

import dis
from collections.abc import Iterable, Iterator
from types import CodeType

from hookloop.beside import is_own
from hookloop.engine.hook import Hook, kind_of
from hookloop.errors import HookError
from hookloop.every import Every

_EXCHANGES = {("run", "gather"), ("run", "reduce")}
_SAVES = {("torch", "save"), ("np", "save"), ("numpy", "save")}
_WRITES = {"write_text", "write_bytes", "savefig", "savez", "savez_compressed", "to_csv"}
_KNOWS_RANKS = {"world", "rank", "is_main", "get_rank"}
_MODES = {"w", "a", "x", "wb", "ab", "xb", "wt", "at", "xt"}


def check_on_ranks(hooks: Iterable[Hook]) -> None:
    """Reject hooks of the user's that cannot work on many ranks.

    Raises:
        HookError: If one exchanges data where not all ranks are, or if all ranks would write the
            same file.
    """
    for hook in hooks:
        codes = list(_codes(hook))
        pairs = {pair for code in codes for pair in _pairs(code)}
        if _is_on_first(hook) and pairs & _EXCHANGES:
            raise HookError(
                f"{kind_of(hook)} runs on the first rank alone, and waits in run.gather() or "
                "run.reduce() for the others, which do not come: write ranks = 'all' and no "
                "interval in time, and let the first rank act with 'if run.world.is_main'."
            )
        names = {name for code in codes for name in code.co_names}
        writes = names & _WRITES or pairs & _SAVES or any(map(_opens_for_writing, codes))
        if writes and not (names & _KNOWS_RANKS or _declares_ranks(hook)):
            raise HookError(
                f"{kind_of(hook)} writes files, and would write each of them on all ranks: declare "
                "ranks = 'first' in its class, or use run.world in it. If each rank has its own "
                "files, declare ranks = 'all'."
            )


def _is_on_first(hook: Hook) -> bool:
    is_by_clock = hook.every is not None and Every.parse(hook.every).unit == "seconds"
    return hook.ranks == "first" or is_by_clock


def _declares_ranks(hook: Hook) -> bool:
    kinds = [kind for kind in type(hook).__mro__ if kind is not Hook]
    return "ranks" in vars(hook) or any("ranks" in vars(kind) for kind in kinds)


def _codes(hook: Hook) -> Iterator[CodeType]:
    """Yield the code of the hook's methods, except for what is hookloop's own."""
    for members in (vars(hook), *map(vars, type(hook).__mro__)):
        for value in members.values():
            code = getattr(value, "__code__", None)
            if isinstance(code, CodeType) and not is_own(value):
                yield from _with_inner(code)


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _with_inner(constant)


def _pairs(code: CodeType) -> Iterator[tuple[object, object]]:
    """Yield what is looked up right after what: ``("torch", "save")`` for ``torch.save``."""
    before: object = None
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            yield before, instruction.argval
        if instruction.opname not in ("CACHE", "PUSH_NULL"):
            before = instruction.argval


def _opens_for_writing(code: CodeType) -> bool:
    return "open" in code.co_names and any(
        isinstance(constant, str) and constant in _MODES for constant in code.co_consts
    )
