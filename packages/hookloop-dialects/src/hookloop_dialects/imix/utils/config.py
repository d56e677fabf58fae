"""``imix.utils.config``: directories, seeds, and dictionaries with attributes."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from hookloop.dialects import seed_all

_log = logging.getLogger("imix")

# Context variables, so that runs in several threads do not see each other's directories.
_work_dir: ContextVar[str] = ContextVar("imix_work_dir", default="./work_dir")
_cache_dir: ContextVar[str] = ContextVar("imix_cache_dir", default="~/cache")


class imixEasyDict(dict[str, Any]):
    """A dictionary whose items are attributes too; dictionaries in it become the same.

    >>> imixEasyDict({"a": {"b": 1}}).a.b
    1
    """

    def __init__(self, values: Mapping[str, Any] | None = None, **others: Any) -> None:  # noqa: ANN401 - any value
        super().__init__()
        self.update({**(values or {}), **others})

    def __setitem__(self, name: str, value: Any) -> None:  # noqa: ANN401 - any value
        super().__setitem__(name, _wrap(value))

    def __setattr__(self, name: str, value: Any) -> None:  # noqa: ANN401 - any value
        self[name] = value

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any value
        if name not in self:
            raise AttributeError(name)
        return self[name]

    def update(self, *others: Any, **values: Any) -> None:  # noqa: ANN401 - as the builtin
        """Set several items."""
        for name, value in dict(*others, **values).items():
            self[name] = value

    def pop(self, k: str, d: Any = None) -> Any:  # noqa: ANN401 - any value
        """Remove an item and return it, or the default: a missing one is not an error in iMIX."""
        return super().pop(k, d)


def _wrap(value: Any) -> Any:  # noqa: ANN401 - any value
    if isinstance(value, Mapping) and not isinstance(value, imixEasyDict):
        return imixEasyDict(value)
    return [_wrap(one) for one in value] if isinstance(value, list) else value


def set_imix_work_dir(work_dir: str) -> None:
    """Set the directory in which hooks write files."""
    _work_dir.set(os.path.expanduser(work_dir))


def get_imix_work_dir() -> str:
    """Return the directory in which hooks write files."""
    return _work_dir.get()


def set_imix_cache_dir(cache_dir: str) -> None:
    """Set the directory of downloaded files."""
    _cache_dir.set(os.path.expanduser(cache_dir))


def get_imix_cache_dir() -> str:
    """Return the directory of downloaded files."""
    return os.path.expanduser(_cache_dir.get())


def seed_all_rng(seed: int | None = None) -> None:
    """Seed all random numbers; without a seed, from the clock."""
    if seed is None:
        seed = (time.time_ns() // 1000 + os.getpid()) % 2**31
    seed_all(seed)
    _log.info("seed: %d", seed)
