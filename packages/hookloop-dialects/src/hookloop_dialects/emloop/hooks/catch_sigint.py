"""`CatchSigint`: end the training cleanly on Ctrl-C."""

from __future__ import annotations

from collections.abc import Sequence

from hookloop import Hook, Priority, Run
from hookloop import hooks as native
from hookloop.dialects import Catalogued


class CatchSigint(Catalogued):
    """Stop on SIGINT, unless another hook of the run does.

    The tutorial uses it. emloop removed it when its main loop began to handle signals, as our
    default hook ``signals`` does.

    Args:
        kwargs: The arguments that emloop passes to every hook; not used.
    """

    dialect = "emloop"

    def __init__(self, **kwargs: object) -> None:
        self.kwargs = kwargs

    def native_hooks(self) -> Sequence[Hook]:
        """Return the hook that handles the signal."""
        return [HandleSigint()]


class HandleSigint(Hook):
    """Let `StopOnSignal` handle SIGINT, unless the run has that hook already."""

    name = "catch_sigint"
    priority = Priority.HIGHEST

    def __init__(self) -> None:
        self._handler: native.StopOnSignal | None = None

    def before_run(self, run: Run) -> None:
        kind = native.StopOnSignal
        # Known only now: when a hook is made, the other hooks of its run are not.
        if not any(type(hook) is kind for hook in run.hooks):
            self._handler = kind(signals=("SIGINT",))
            self._handler.before_run(run)

    def after_run(self, run: Run) -> None:
        if self._handler is not None:
            self._handler.after_run(run)
            self._handler.restore_handlers()  # The run calls this for its own hooks only.
            self._handler = None
