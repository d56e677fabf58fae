"""Functions that act on the first rank only."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_log = logging.getLogger("lightning.pytorch")


def _rank() -> int:
    return int(os.environ.get("RANK", os.environ.get("SLURM_PROCID", "0")))


def rank_zero_only(fn: Callable[P, R], default: R | None = None) -> Callable[P, R | None]:
    """Call a function on the first rank only; elsewhere it returns the default.

    >>> rank_zero_only(len)([1, 2])
    2
    """

    @wraps(fn)
    def call(*args: P.args, **kwargs: P.kwargs) -> R | None:
        return fn(*args, **kwargs) if _rank() == 0 else default

    return call


# Scripts read ``rank_zero_only.rank``.
rank_zero_only.rank = _rank()  # type: ignore[attr-defined]


@rank_zero_only
def rank_zero_info(*args: object, **kwargs: object) -> None:
    """Log a message."""
    kwargs.pop("stacklevel", None)
    _log.info(*args, **kwargs)  # type: ignore[arg-type]


@rank_zero_only
def rank_zero_debug(*args: object, **kwargs: object) -> None:
    """Log a message for the author."""
    kwargs.pop("stacklevel", None)
    _log.debug(*args, **kwargs)  # type: ignore[arg-type]


@rank_zero_only
def rank_zero_warn(
    message: str, stacklevel: int = 4, category: type[Warning] = UserWarning, **kwargs: object
) -> None:
    """Warn."""
    warnings.warn(message, category=category, stacklevel=stacklevel)


@rank_zero_only
def rank_zero_deprecation(message: str, stacklevel: int = 5, **kwargs: object) -> None:
    """Warn of what will be removed."""
    warnings.warn(message, category=DeprecationWarning, stacklevel=stacklevel)
