"""``mmengine.utils.misc``: decorators of functions that need something, or are out of date."""

from __future__ import annotations

import functools
import logging
import shutil
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from inspect import getfullargspec
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
Decorator = Callable[[Callable[P, R]], Callable[P, R]]

_MESSAGE = (
    'Prerequisites "{}" are required in method "{}" but not found, please install them first.'
)


def check_prerequisites(
    prerequisites: str | Sequence[str], checker: Callable[[str], bool], msg_tmpl: str = _MESSAGE
) -> Decorator[P, R]:
    """Return a decorator that raises when the function is called and something is missing."""
    required = [prerequisites] if isinstance(prerequisites, str) else list(prerequisites)

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            missing = [name for name in required if not checker(name)]
            if missing:
                sys.stdout.write(msg_tmpl.format(", ".join(missing), function.__name__) + "\n")
                raise RuntimeError("Prerequisites not meet.")
            return function(*args, **kwargs)

        return checked

    return decorate


def requires_package(prerequisites: str | Sequence[str]) -> Decorator[P, R]:
    """Return a decorator of functions that need Python packages."""
    return check_prerequisites(prerequisites, _is_importable)


def requires_executable(prerequisites: str | Sequence[str]) -> Decorator[P, R]:
    """Return a decorator of functions that need programs."""
    return check_prerequisites(prerequisites, lambda name: shutil.which(name) is not None)


def _is_importable(package: str) -> bool:
    try:
        import_module(package)
    except ImportError:
        return False
    return True


def deprecated_api_warning(
    name_dict: Mapping[str, str], cls_name: str | None = None
) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Return a decorator that renames old keyword arguments, with a warning.

    Args:
        name_dict: The new name of each old one.
        cls_name: The class of the method, for the message.
    """

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        shown = f"{cls_name}.{function.__name__}" if cls_name else function.__name__

        @functools.wraps(function)
        def renamed(*args: object, **kwargs: object) -> R:
            positional = getfullargspec(function).args[: len(args)]
            for old, new in name_dict.items():
                if old not in kwargs and old not in positional:
                    continue
                if old in kwargs and new in kwargs:
                    raise AssertionError(
                        f"`{old}` is the old name of `{new}` in `{shown}`, and both are given."
                    )
                text = f'"{old}" is deprecated in `{shown}`, please use "{new}" instead'
                warnings.warn(text, DeprecationWarning, stacklevel=2)
                if old in kwargs:
                    kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return renamed

    return decorate


def deprecated_function(since: str, removed_in: str, instructions: str) -> Decorator[P, R]:
    """Return a decorator of functions that will be removed; each call logs a warning.

    Args:
        since: The version in which the function became out of date.
        removed_in: The version without it.
        instructions: What to do instead.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def warned(*args: P.args, **kwargs: P.kwargs) -> R:
            from hookloop_mmengine.logging import print_log

            print_log(
                f"'{function.__module__}.{function.__name__}' is deprecated in version {since} "
                f"and will be removed in version {removed_in}. Please {instructions}.",
                logger="current",
                level=logging.WARNING,
            )
            return function(*args, **kwargs)

        return warned

    return decorate
