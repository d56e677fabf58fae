"""Aliases and grafts in spawned processes, which import the user's script again."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Sequence
from multiprocessing import spawn
from types import TracebackType
from typing import Any, Self


class Temporary:
    """A change that `undo` takes back, and the end of a ``with`` block, too."""

    def undo(self) -> None:
        """Set everything back."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.undo()


class InSpawned(Temporary):
    """Call a function in each process that is spawned, before it imports the script.

    Args:
        key: A name for it, among what such a process is given.
        function: The function, which the process has to be able to import.
        arguments: Its arguments.
    """

    def __init__(self, key: str, function: Callable[..., None], *arguments: object) -> None:
        self._key = key
        self._call = function, arguments
        self._prepare = spawn.get_preparation_data
        spawn.get_preparation_data = self._prepare_with_call

    def _prepare_with_call(self, name: str) -> dict[str, Any]:
        prepared = self._prepare(name)
        return {**prepared, self._key: _Call(*self._call, prepared.get("sys_path"))}

    def undo(self) -> None:
        """Leave processes that are spawned from now on alone."""
        if spawn.get_preparation_data == self._prepare_with_call:
            spawn.get_preparation_data = self._prepare


class _Call:
    """A call that happens in another process as soon as that unpickles it."""

    def __init__(
        self,
        function: Callable[..., None],
        arguments: tuple[object, ...],
        path: Sequence[str] | None,
    ) -> None:
        # By itself: the function can be imported only when the path is set.
        self._call = pickle.dumps((function, arguments))
        self._path = path

    def __reduce__(self) -> tuple[Callable[..., None], tuple[object, ...]]:
        return call_here, (self._call, self._path)


def call_here(call: bytes, path: Sequence[str] | None) -> None:
    """Call a function, with the import path that multiprocessing sets a moment later.

    Args:
        call: The function and its arguments, pickled by the process that has started this one.
        path: The import path of that process.
    """
    if path is not None:
        sys.path = list(path)
    function, arguments = pickle.loads(call)
    function(*arguments)
