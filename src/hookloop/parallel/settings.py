"""``parallel=``: how the ranks of a run work together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal, cast, get_args

from hookloop.errors import HookloopError, nearest
from hookloop.every import Every

Strategy = Literal["auto", "none", "replicated", "sharded"]

TIMEOUT = 300.0
"""Seconds for which one rank may keep the others waiting."""


@dataclass(frozen=True)
class Parallel:
    """How the ranks of a run work together; a single process needs none of it.

    Attributes:
        strategy: ``"replicated"``: each rank has the whole model; ``"sharded"``: each has a part
            of every parameter; ``"auto"`` is replicated; ``"none"`` rejects more than one rank.
        unused_parameters: Whether a loss may leave parameters out. By default it may where there
            is a ``step=`` or several updates, in which branches are common.
        timeout: How long one rank may keep the others waiting: ``"5 min"``, or seconds.

    >>> Parallel.parse("replicated").timeout
    300.0
    >>> Parallel.parse({"timeout": "1 min"}).timeout
    60.0
    """

    strategy: Strategy = "auto"
    unused_parameters: bool | None = None
    timeout: float = TIMEOUT

    @classmethod
    def parse(cls, given: Parallel | str | Mapping[str, object] | None) -> Parallel:
        """Read the name of a strategy, or a mapping of settings."""
        if given is None or isinstance(given, Parallel):
            return given or cls()
        settings = {"strategy": given} if isinstance(given, str) else given
        if not isinstance(settings, Mapping):
            raise _problem(f"{given!r} must be the name of a strategy, or a mapping of settings.")
        names = [field.name for field in fields(cls)]
        for name in settings:
            if name not in names:
                raise _problem(
                    f"there is no setting '{name}'.{nearest(str(name), names)} "
                    f"There are: {', '.join(names)}."
                )
        parsed = {name: _READ[name](value) for name, value in settings.items() if name in _READ}
        return cls(**{**settings, **parsed})  # type: ignore[arg-type]


def _problem(message: str) -> HookloopError:
    return HookloopError(f"parallel: {message}", argument="parallel")


def _strategy(value: object) -> Strategy:
    names = get_args(Strategy)
    if value not in names:
        raise _problem(
            f"{value!r} is not a strategy.{nearest(str(value), names)} Write {', '.join(names)}."
        )
    return cast("Strategy", value)


def _switch(value: object) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise _problem(f"unused_parameters is {value!r}: write true or false.")
    return value


def _seconds(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        return float(value)
    if isinstance(value, str):
        interval = Every.parse(value)
        if interval.unit == "seconds":
            return float(interval.count)
    raise _problem(f"timeout is {value!r}: write seconds, or a time such as '5 min'.")


_READ = {"strategy": _strategy, "unused_parameters": _switch, "timeout": _seconds}
