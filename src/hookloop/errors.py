"""Every fault that hookloop blames on its user, and how such a fault is worded.

    HookloopError
      ConfigError       one or several faults of a config file, each with file:line
      HookError         a hook that cannot be registered or built
      DataError         data that cannot be trained on
      ModelError        a model, loss or optimizer that cannot be trained
      MetricError       a metric that nothing produces
        MissingMetricError  a metric that was looked up and is not there; also a KeyError
      CheckpointError   a checkpoint that cannot be written, found or loaded
      RunExistsError    a run directory that already holds another run
      LinkError         a link in the place of a file of a run; also an OSError
      ArgumentError     an argument that Trainer or a hook does not have; also a TypeError
      ScheduleError     a schedule that cannot be read; also a ValueError

An exception raised by the user's own code is never wrapped in one of these.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hookloop.runs.shown import shown


class HookloopError(Exception):
    """A user's fault, worded so that it can be mended: what, where, what to do.

    ``hook`` names the hook that is to blame, so that a config can tell where that is written.
    """

    def __init__(self, message: str, hook: str | None = None) -> None:
        super().__init__(shown(message))
        self.hook = hook


class HookError(HookloopError):
    """A hook that cannot be registered or built."""


class DataError(HookloopError):
    """Data that cannot be trained on."""


class ModelError(HookloopError):
    """A model, loss or optimizer that cannot be trained."""


class MetricError(HookloopError):
    """A metric that nothing produces."""


class MissingMetricError(MetricError, KeyError):
    """A metric that was looked up and is not there."""


class CheckpointError(HookloopError):
    """A checkpoint that cannot be written, found or loaded."""


class RunExistsError(HookloopError):
    """A run directory that already holds another run."""


class LinkError(HookloopError, OSError):
    """A link, or anything else that is not a file of its own, in the place of a run's file."""


class ArgumentError(HookloopError, TypeError):
    """An argument that Trainer or a hook does not have."""


class ScheduleError(HookloopError, ValueError):
    """A schedule that cannot be read."""


@dataclass(frozen=True)
class Fault:
    """One thing wrong with a config: the message, and the ``file:line`` it points at."""

    message: str
    where: str | None = None

    def __str__(self) -> str:
        return shown(f"{self.where}: {self.message}" if self.where else self.message)


class ConfigError(HookloopError):
    """All faults found in a config, so that they can be mended in one go.

    >>> print(ConfigError([Fault("no such key 'modle'.", "a.yaml:3")]))
    a.yaml:3: no such key 'modle'.
    """

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))


def nearest(name: str, options: Iterable[str]) -> str:
    """Return a sentence that suggests the option closest to ``name``, or nothing.

    The leading space lets it be appended to any message.

    >>> nearest("after_trian_iter", ["before_run", "after_train_iter"])
    " Did you mean 'after_train_iter'?"
    >>> nearest("zebra", ["before_run"])
    ''
    """
    by_folded = {option.lower(): option for option in options}
    close = difflib.get_close_matches(name.lower(), by_folded, n=1, cutoff=0.6)
    return f" Did you mean '{by_folded[close[0]]}'?" if close else ""
