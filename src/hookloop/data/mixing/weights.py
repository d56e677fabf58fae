"""How training streams are mixed: in which way, and with which weights at which time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from math import isfinite

from hookloop.errors import DataError, IntervalError, nearest
from hookloop.every import Counters, Every

Mix = str | Mapping[str, object] | Callable[[Counters], Mapping[str, float]]
"""``"zip"``, ``"cycle"``, ``"in order"``, weights by stream, or a function that returns these."""

WAYS = ("zip", "cycle", "in order")

CHOICES = (
    "mix='zip' (a batch of each, until the shortest ends), 'cycle' (until the longest ends), "
    "'in order' (one after the other), or weights with which to draw, mix={'a': 3, 'b': 1}"
)


def way_of(mix: object, names: Sequence[str]) -> str:
    """Return the way of mixing: one of `WAYS`, or ``"weights"``; reject what is none.

    >>> way_of("zip", ["a", "b"]), way_of({"a": 3, "b": 1}, ["a", "b"])
    ('zip', 'weights')
    """
    if mix is None:
        raise DataError(
            f"train_data has several streams ({', '.join(names)}): say how to mix them. {CHOICES}.",
            argument="train_data",
        )
    if isinstance(mix, Mapping) or callable(mix):
        return "weights"
    if isinstance(mix, str) and mix in WAYS:
        return mix
    hint = nearest(mix, WAYS) if isinstance(mix, str) else ""
    raise DataError(
        f"mix={mix!r} is not a way to mix streams.{hint} Write {CHOICES}.", argument="mix"
    )


class Weights:
    """The weights of streams, each a number or numbers that hold from some points of the run on.

    Args:
        given: Weights by stream, or a function of the run's progress that returns them.
        names: The streams.

    >>> from types import SimpleNamespace as At
    >>> weights = Weights({"a": {0: 3, "5 epochs": 1}, "b": 1}, ["a", "b"])
    >>> weights.at(At(iter=0, epoch=0)), weights.at(At(iter=900, epoch=5))
    ({'a': 3.0, 'b': 1.0}, {'a': 1.0, 'b': 1.0})
    """

    def __init__(
        self,
        given: Mapping[str, object] | Callable[[Counters], Mapping[str, float]],
        names: Sequence[str],
    ) -> None:
        self._names = list(names)
        self._function = None if isinstance(given, Mapping) else given
        self._steps: dict[str, list[tuple[Every | None, float]]] = {}
        self._fixed: dict[str, float] | None = None
        if isinstance(given, Mapping):
            _check_names(given, self._names)
            self._steps = {name: _steps(name, given[name]) for name in self._names}
            first = {name: steps[0][1] for name, steps in self._steps.items()}
            if all(len(steps) == 1 for steps in self._steps.values()):
                self._fixed = first
                _check_sum(first)

    def at(self, progress: Counters) -> dict[str, float]:
        """Return the weights of all streams at a time of the run."""
        if self._fixed is not None:
            return self._fixed
        if self._function is not None:
            weights = self._call(self._function, progress)
        else:
            weights = {name: _reached(steps, progress) for name, steps in self._steps.items()}
        _check_sum(weights)
        return weights

    def _call(
        self, function: Callable[[Counters], Mapping[str, float]], progress: Counters
    ) -> dict[str, float]:
        returned: object = function(progress)
        if not isinstance(returned, Mapping):
            raise DataError(
                f"The function given as mix= returned {returned!r}: it must return weights by "
                f"stream, {{{self._names[0]!r}: 1.0, ...}}.",
                argument="mix",
            )
        _check_names(returned, self._names)
        return {name: _weight(name, returned[name]) for name in self._names}


def draw(key: int, count: int, weights: Mapping[str, float]) -> str:
    """Draw a stream with the given weights.

    What is drawn depends on the key and the count alone, and on no generator: the model draws the
    same numbers with and without a mixture, and a resume needs to know the two numbers only.

    >>> [draw(0, count, {"a": 3.0, "b": 1.0}) for count in range(6)]
    ['a', 'b', 'b', 'a', 'b', 'a']
    """
    digest = hashlib.blake2b(f"{key}/{count}".encode(), digest_size=8).digest()
    rest = int.from_bytes(digest, "little") / 2**64 * sum(weights.values())
    possible = [name for name, weight in weights.items() if weight > 0]
    for name in possible:
        rest -= weights[name]
        if rest < 0:
            return name
    return possible[-1]  # By rounding.


def _check_names(given: Mapping[str, object], names: Sequence[str]) -> None:
    for name in given:
        if name not in names:
            raise DataError(
                f"mix= has a weight for {name!r}, which is not a stream of train_data."
                f"{nearest(str(name), names)} There are: {', '.join(names)}.",
                argument="mix",
            )
    for name in names:
        if name not in given:
            raise DataError(
                f"mix= has no weight for the stream '{name}': give one, which may be 0.",
                argument="mix",
            )


def _check_sum(weights: Mapping[str, float]) -> None:
    if not sum(weights.values()) > 0:
        raise DataError(
            f"mix= gives all streams the weight 0 ({', '.join(weights)}): one needs to be above 0.",
            argument="mix",
        )


def _weight(name: str, value: object) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not isfinite(value) or value < 0:  # type: ignore[arg-type,operator]
        raise DataError(
            f"mix= has the weight {value!r} for '{name}': it must be a number, 0 or more, or "
            "numbers by the points from which they hold, {0: 3, '5 epochs': 1}.",
            argument="mix",
        )
    return float(value)  # type: ignore[arg-type]


def _steps(name: str, value: object) -> list[tuple[Every | None, float]]:
    """Read one number, or numbers by the points from which they hold."""
    if not isinstance(value, Mapping):
        return [(None, _weight(name, value))]
    steps: list[tuple[Every | None, float]] = []
    for point, weight in value.items():
        try:
            begin = None if str(point).split(" ")[0] == "0" else Every.parse(point)
        except IntervalError as error:
            raise DataError(
                f"mix= for '{name}': {point!r} is not a point of the run: write a number of "
                "iterations (500), '500 iters' or '5 epochs'.",
                argument="mix",
            ) from error
        if begin is not None and begin.unit == "seconds":
            raise DataError(
                f"mix= for '{name}': '{begin}' is a time, which a resume could not repeat: write "
                "iterations or epochs.",
                argument="mix",
            )
        steps.append((begin, _weight(name, weight)))
    if not steps or steps[0][0] is not None:
        raise DataError(
            f"mix= for '{name}' does not begin at 0: write {{0: 3, '5 epochs': 1}}.",
            argument="mix",
        )
    return steps


def _reached(steps: Sequence[tuple[Every | None, float]], progress: Counters) -> float:
    """Return the number that holds now: the last one, as written, whose point is reached."""
    return next(
        weight for begin, weight in reversed(steps) if begin is None or begin.reached(progress)
    )
