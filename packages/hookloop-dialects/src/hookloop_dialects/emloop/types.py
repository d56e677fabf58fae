"""The types and the exception that hook files import from ``emloop.types``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from typing import Any, TypeGuard

# `Any`, as in emloop: hook files index into these without casts.
Batch = Mapping[str, Sequence[Any]]
"""Variables by name, each with one entry per example."""

Stream = Iterable[Batch]
"""The batches of one stream."""

EpochData = MutableMapping[str, MutableMapping[str, Any]]
"""What hooks computed from each stream; shared by all hooks of an epoch."""

TimeProfile = Mapping[str, list[float]]
"""Lists of seconds by activity."""


class TrainingTerminated(Exception):
    """Raised by a hook to end the training successfully."""


def is_termination(error: BaseException) -> TypeGuard[TrainingTerminated]:
    """Return whether an exception ends the training."""
    # By name: an installed emloop has a class of its own, which we cannot import here.
    return any(kind.__name__ == "TrainingTerminated" for kind in type(error).__mro__)
