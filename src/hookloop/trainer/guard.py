"""Misspelled arguments and attributes of a Trainer, and settings that come too late."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from typing import TYPE_CHECKING, Any, Self

from hookloop import peers
from hookloop.arguments import check_names, check_values, missing_attribute
from hookloop.errors import ArgumentError
from hookloop.trainer import settings
from hookloop.trainer.argument_checks import check_given

_LIMITS = ("max_epochs", "max_iters")


class ChecksArguments:
    """Rejects misspelled arguments, and settings that would come too late to have an effect."""

    if not TYPE_CHECKING:  # Type checkers know the arguments and attributes themselves.

        def __init_subclass__(cls, **kwargs: object) -> None:
            super().__init_subclass__(**kwargs)
            for name in ("train", "validate", "test", "predict"):
                # A method that a subclass inherits is checked already.
                if name in vars(cls):
                    setattr(cls, name, _checked(vars(cls)[name]))

        # `__new__` is called first. In `__init__`, Python would have raised its own TypeError
        # before the first line.
        def __new__(cls, *args: object, **named: object) -> Self:
            """Check the arguments before the constructor does."""
            check_names(cls, args, named, peers.ARGUMENTS, settings.advice())
            given = inspect.signature(cls).bind_partial(*args, **named).arguments
            check_given(settings.spread(given))
            check_values(cls, args, named)
            return super().__new__(cls)

        def __setattr__(self, name: str, value: object) -> None:
            # The constructor itself must set attributes, and a subclass may define properties.
            if "run" in self.__dict__ and not hasattr(type(self), name):
                _check_settable(self, name)
            super().__setattr__(name, value)

        def __getattr__(self, name: str) -> object:
            raise missing_attribute(self, name, peers.METHODS)


def _checked(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method reject unknown arguments in the same way as the constructor."""

    @wraps(method)
    def call(self: object, *args: object, **named: object) -> object:
        # Bound, because the arguments come without `self`.
        check_names(method.__get__(self), args, named, peers.ARGUMENTS, peers.ADVICE)
        return method(self, *args, **named)

    return call


def _check_settable(trainer: object, name: str) -> None:
    """Reject an argument that is set on a finished Trainer, which has read it already."""
    arguments = inspect.signature(type(trainer)).parameters
    meant = next(iter(get_close_matches(name, arguments, 1, 0.85)), None)
    meant = meant or peers.translation(name, peers.ARGUMENTS, (*_LIMITS, "hooks"))
    meant = meant or settings.instead_of(name)
    if meant is None or name.startswith("_"):
        return
    if meant in _LIMITS:
        instead = f"trainer.train({meant}=...) trains up to another limit"
    elif meant == "hooks":
        instead = "give it to Trainer(...), or attach a function with @trainer.on(...)"
    else:
        instead = f"give it to Trainer({settings.in_python(meant)})"
    raise ArgumentError(
        f"trainer.{name} cannot be set: '{meant}' was read when the Trainer was made, so it would "
        f"have no effect. Instead, {instead}."
    )
