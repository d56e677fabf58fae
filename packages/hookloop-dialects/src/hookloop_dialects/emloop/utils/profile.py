"""``emloop.utils.profile``: measure blocks of code."""

from __future__ import annotations

from contextlib import AbstractContextManager
from time import perf_counter


class Timer(AbstractContextManager[None]):
    """Add the seconds that a block takes to a list of a profile.

    Args:
        name: The name of the list.
        profile: The profile.
    """

    def __init__(self, name: str, profile: dict[str, list[float]]) -> None:
        self._name = name
        self._profile = profile
        self._began = 0.0

    def __enter__(self) -> None:
        self._began = perf_counter()

    def __exit__(self, *error: object) -> None:
        self._profile.setdefault(self._name, []).append(perf_counter() - self._began)
