"""What is said when a Trainer is given an argument, or asked for an attribute, that it lacks."""

from __future__ import annotations

import inspect
from difflib import get_close_matches
from typing import TYPE_CHECKING, Self

from hookloop import peers
from hookloop.arguments import check_names
from hookloop.errors import ArgumentError, nearest


class Guarded:
    """Rejects misspelt arguments, and settings that would come too late to have an effect."""

    if not TYPE_CHECKING:  # Type checkers know the arguments and attributes themselves.

        def __new__(cls, *args: object, **named: object) -> Self:
            """Check the names of the arguments before the constructor does."""
            check_names(cls, args, named, peers.ARGUMENTS)
            return super().__new__(cls)

        def __setattr__(self, name: str, value: object) -> None:
            if "run" in self.__dict__ and not hasattr(type(self), name):
                _check_settable(self, name)
            super().__setattr__(name, value)

        def __getattr__(self, name: str) -> object:
            kind = type(self).__name__
            ours = peers.translation(name, peers.METHODS)
            hint = f" It is {ours}."
            if ours is None:
                hint = nearest(name, [one for one in dir(self) if not one.startswith("_")])
            raise AttributeError(f"'{kind}' object has no attribute '{name}'.{hint}", name=None)


def _check_settable(trainer: object, name: str) -> None:
    """Reject an argument that is set on a finished Trainer, which has read it already."""
    arguments = inspect.signature(type(trainer)).parameters
    meant = next(iter(get_close_matches(name, arguments, 1, 0.85)), None)
    if meant is None or name.startswith("_"):
        return
    if meant in ("max_epochs", "max_iters"):
        instead = f"trainer.train({meant}=...) trains up to another limit"
    elif meant == "hooks":
        instead = "give it to Trainer(...), or attach a function with @trainer.on(...)"
    else:
        instead = f"give it to Trainer({meant}=...)"
    raise ArgumentError(
        f"trainer.{name} cannot be set: '{meant}' was read when the Trainer was made, so it would "
        f"have no effect. Instead, {instead}."
    )
