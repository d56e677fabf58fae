"""A file system of fsspec that goes away when a test says so."""

from __future__ import annotations

import errno
import os
import threading
from typing import Literal, cast

import fsspec
from fsspec.implementations.memory import MemoryFileSystem

PROTOCOL = "unreliable"

State = Literal["well", "hangs", "fails", "slow", "full"]


class Unreliable(MemoryFileSystem):
    """Keeps files in memory; every call of it hangs, fails or takes its time while it is told to.

    One that is full fails to write, and to do nothing else.

    Attributes:
        state: What it does to every call.
        seconds: How long a call takes that is slow, or fails slowly.
        disturbed: How many calls hung, failed or were slow, since it last became something.
        back: Set when a store that hangs comes back.
    """

    protocol = PROTOCOL
    store: dict[str, object] = {}  # noqa: RUF012 - as in the base
    pseudo_dirs = [""]  # noqa: RUF012
    state: State = "well"
    seconds = 0.0
    disturbed = 0
    back = threading.Event()

    @classmethod
    def become(cls, state: State, seconds: float = 0.0) -> None:
        """Go away, or come back."""
        cls.state, cls.seconds, cls.disturbed = state, seconds, 0
        if state == "hangs":
            cls.back.clear()
        else:
            cls.back.set()

    def _pass(self) -> None:
        type(self).disturbed += self.state in ("hangs", "fails", "slow")
        if self.state == "hangs":
            self.back.wait(60)
        elif self.state in ("fails", "slow"):
            threading.Event().wait(self.seconds)
        if self.state == "fails":
            raise ConnectionError("the bucket is gone")

    def ls(self, path: str, detail: bool = True, **kwargs: object) -> list[object]:
        self._pass()
        return cast("list[object]", super().ls(path, detail, **kwargs))

    def info(self, path: str, **kwargs: object) -> dict[str, object]:
        self._pass()
        return cast("dict[str, object]", super().info(path, **kwargs))

    def exists(self, path: str, **kwargs: object) -> bool:
        self._pass()
        return cast("bool", super().exists(path, **kwargs))

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        self._pass()
        super().makedirs(path, exist_ok)

    def _open(self, path: str, mode: str = "rb", **kwargs: object) -> object:
        self._pass()
        if self.state == "full" and mode != "rb":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super()._open(path, mode, **kwargs)


def open_unreliable() -> str:
    """Begin with a store that is well and empty; return its URL."""
    fsspec.register_implementation(PROTOCOL, Unreliable, clobber=True)
    Unreliable.store.clear()
    Unreliable.pseudo_dirs[:] = [""]
    Unreliable.become("well")
    return f"{PROTOCOL}://bucket"
