"""`TraceRun`: keep a small file that shows the state of a run to other programs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from hookloop.checkpoint.state.shape import check_state, is_text
from hookloop.engine.hook import Hook, Priority
from hookloop.errors import HookError
from hookloop.runs import plain_yaml
from hookloop.runs.layout import write_text

if TYPE_CHECKING:
    from hookloop.engine.run import Run


class TraceRun(Hook):
    """Keep ``trace.yaml`` in the run directory: start and end time, epochs done, exit status.

    It is rewritten at the start, after each epoch and at the end, even after a failure. A resumed
    run keeps the time of its first start. ``exit_status`` is null until the run ends.

    Args:
        file: The file's name.

    Example:
        >>> TraceRun().file
        'trace.yaml'
    """

    ranks = "first"
    priority = Priority.LOWEST  # Another hook may still fail at the same point.
    on_error = "disable"
    draws_random_numbers = False

    def __init__(self, file: str = "trace.yaml") -> None:
        if not file or "/" in file:
            raise HookError(f"TraceRun: file={file!r} must be a file name without directories.")
        self.file = file
        self._begun = ""
        self._is_training = False

    def state_dict(self) -> dict[str, object]:
        return {"begun": self._begun}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        check_state(state, {"begun": is_text})
        self._begun = cast("str", state["begun"])

    def before_train(self, run: Run) -> None:
        self._begun = self._begun or _now()  # A resumed run has it from its checkpoint.
        self._is_training = True
        self._write(run)

    def after_epoch(self, run: Run) -> None:
        self._write(run)

    def after_run(self, run: Run) -> None:
        if self._is_training:  # An evaluation does not change the trace of the training.
            self._write(run, ended=_now())
        self._is_training = False

    def _write(self, run: Run, ended: str | None = None) -> None:
        trace = {
            "train_begin": self._begun,
            "train_end": ended,
            "epochs_done": run.progress.epoch,
            "iters_done": run.progress.iter,
            "status": run.outcome.status,
            "reason": run.outcome.reason,
            "exit_status": None if ended is None else run.outcome.exit_code,
        }
        write_text(run.dir / self.file, plain_yaml.dump(trace))


def _now() -> str:
    # In UTC, because a run may be continued on a machine in another time zone.
    return datetime.now(UTC).isoformat(timespec="seconds")
