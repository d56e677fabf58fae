"""`CatchSigint`: Ctrl-C ends the training in order."""

from __future__ import annotations

from collections.abc import Sequence

from hookloop import hooks as native
from hookloop.core.hook import Hook, Priority
from hookloop.core.run import Run
from hookloop.dialects.adapter import Catalogued


class CatchSigint(Catalogued):
    """Obey SIGINT, if no other hook of the run does.

    The tutorial names it; emloop dropped it when its main loop learned to obey signals itself, as
    our default hook ``signals`` does.

    Args:
        kwargs: What emloop gives to every hook; not needed.
    """

    dialect = "emloop"

    def __init__(self, **kwargs: object) -> None:
        self.kwargs = kwargs

    def native_hooks(self) -> Sequence[Hook]:
        """Return the hook that obeys the signal."""
        return [ObeySigint()]


class ObeySigint(Hook):
    """Lets `StopOnSignal` obey SIGINT, unless it is in the run already."""

    name = "catch_sigint"
    priority = Priority.HIGHEST

    def __init__(self) -> None:
        self._obeys: native.StopOnSignal | None = None

    def before_run(self, run: Run) -> None:
        kind = native.StopOnSignal
        if not any(type(hook) is kind for hook in run.hooks):
            self._obeys = kind(signals=("SIGINT",))
            self._obeys.before_run(run)

    def after_run(self, run: Run) -> None:
        if self._obeys is not None:
            self._obeys.after_run(run)
            self._obeys.restore_handlers()  # The run knows only its own hooks.
            self._obeys = None
