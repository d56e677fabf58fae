"""The types and the exception that emloop's hook files import from ``emloop.types``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from typing import Any, TypeGuard

# `Any`, as in emloop: hook files index into these without asking for types.
Batch = Mapping[str, Sequence[Any]]
"""From names of variables to one entry per example."""

Stream = Iterable[Batch]
"""Batches."""

EpochData = MutableMapping[str, MutableMapping[str, Any]]
"""From streams to what hooks computed of them; shared by all hooks of an epoch."""

TimeProfile = Mapping[str, list[float]]
"""Seconds, by what they were spent on."""


class TrainingTerminated(Exception):
    """Raised by a hook to end the training, successfully."""


def is_termination(error: BaseException) -> TypeGuard[TrainingTerminated]:
    """Tell whether an exception ends the training: ours, or that of an installed emloop."""
    return any(kind.__name__ == "TrainingTerminated" for kind in type(error).__mro__)
