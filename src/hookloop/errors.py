"""The errors that hookloop raises when its user has to change something.

    HookloopError
      ConfigError       one or several problems of a config file, each with file:line
      HookError         a hook that cannot be registered or built
      DataError         data that cannot be trained on
      ModelError        a model, loss or optimizer that cannot be trained
      MetricError       a metric that nothing produces
        MissingMetricError  a metric that was looked up and is not there; also a KeyError
      CheckpointError   a checkpoint that cannot be written, found or loaded
      RunExistsError    a run directory that already holds another run
      LinkError         a link where a file of a run should be; also an OSError
      SkippedUpdateError  what run.skip_update() raises; the step that called it ends with it
      ArgumentError     an argument that Trainer or a hook does not have; also a TypeError
      IntervalError     an interval that cannot be read; also a ValueError

A `LossWarning` is a warning of Python, which a program may turn into an error.

An exception raised by the user's own code is never wrapped in one of these.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from hookloop.runs.shown import make_safe

__all__ = [
    "ArgumentError",
    "CheckpointError",
    "ConfigError",
    "DataError",
    "HookError",
    "HookloopError",
    "IntervalError",
    "LinkError",
    "LossWarning",
    "MetricError",
    "MissingMetricError",
    "ModelError",
    "RunExistsError",
    "SkippedUpdateError",
    "nearest",
]


class HookloopError(Exception):
    """Something the user has to fix. The message gives what is wrong, where, and what to do.

    Attributes:
        hook: The name of the hook that causes it, so that a config can show the hook's line.
        argument: The argument that causes it. An argument of Trainer is a key of a config, which
            can then show the line of that key.
    """

    def __init__(
        self, message: str, hook: str | None = None, *, argument: str | None = None
    ) -> None:
        # Messages quote files and foreign exceptions, which may hold secrets or terminal codes.
        super().__init__(make_safe(message))
        self.hook = hook
        self.argument = argument


class HookError(HookloopError):
    """A hook that cannot be registered or built."""


class DataError(HookloopError):
    """Data that cannot be trained on."""


class ModelError(HookloopError):
    """A model, loss or optimizer that cannot be trained."""


class SkippedUpdateError(HookloopError):
    """Ends a step that skips its update; an error only where there is no step to end."""


class MetricError(HookloopError):
    """A metric that nothing produces."""


# Metrics are looked up like the entries of a mapping, so it can be caught as a KeyError.
class MissingMetricError(MetricError, KeyError):
    """A metric that was looked up and is not there."""

    __str__ = Exception.__str__  # That of KeyError puts quotes around the message.


class CheckpointError(HookloopError):
    """A checkpoint that cannot be written, found or loaded."""


class RunExistsError(HookloopError):
    """A run directory that already holds another run."""


# The second base class of the next three lets code that knows nothing of hookloop catch them as
# the errors that Python itself would raise.
class LinkError(HookloopError, OSError):
    """A link, or anything else that is not a regular file, where a file of a run should be."""


class ArgumentError(HookloopError, TypeError):
    """An argument that Trainer or a hook does not have."""


class IntervalError(HookloopError, ValueError):
    """An interval that cannot be read."""


class LossWarning(UserWarning):
    """A loss that is computed in a way that is a mistake almost always; said once per training."""


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a config: the message, and the ``file:line`` it points at."""

    message: str
    where: str | None = None

    def __str__(self) -> str:
        return make_safe(f"{self.where}: {self.message}" if self.where else self.message)


class ConfigError(HookloopError):
    """All problems found in a config, so that they can be fixed in one go.

    >>> print(ConfigError([Problem("no such key 'modle'.", "a.yaml:3")]))
    a.yaml:3: no such key 'modle'.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        # One line each, so that editors and terminals find every `file:line`.
        super().__init__("\n".join(str(problem) for problem in self.problems))


@contextmanager
def caused_by(argument: str) -> Iterator[None]:
    """Set ``argument`` of every error raised inside that does not name an argument itself."""
    try:
        yield
    except HookloopError as error:
        # The innermost one knows most about the cause.
        error.argument = error.argument or argument
        raise


def nearest(name: str, options: Iterable[str]) -> str:
    """Return a sentence that suggests the option closest to ``name``, or an empty text.

    The leading space lets it be appended to any message.

    >>> nearest("after_trian_iter", ["before_run", "after_train_iter"])
    " Did you mean 'after_train_iter'?"
    >>> nearest("zebra", ["before_run"])
    ''
    """
    # As text: a user may have written a number. In one case: difflib counts a letter in the wrong
    # one as wrong, and 'adamw' would not suggest 'AdamW'.
    by_folded = {option.lower(): option for option in options}
    close = difflib.get_close_matches(str(name).lower(), by_folded, n=1, cutoff=0.6)
    return f" Did you mean '{by_folded[close[0]]}'?" if close else ""
