"""`WriteToTracker`: the base of hooks that write to a tracking service."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from time import time
from typing import TYPE_CHECKING, cast

from hookloop.every import Every
from hookloop.hooks.writing._writing import Writing
from hookloop.runs.files import write_text
from hookloop.writers.base import Writer
from hookloop.writers.records import Record, Scalars
from hookloop.writers.skip_written import SkipWritten

if TYPE_CHECKING:
    from pathlib import Path

    from hookloop.engine.run import Run

FILE = "trackers.json"
DELIVERY_SECONDS = 30.0
"""Seconds after which a number has reached the service, even if the process is killed then."""
MAX_SENT = 1000
"""How many sent records to remember; they are in every checkpoint if they are recent."""


class WriteToTracker(Writing):
    """Send the numbers of a run to one run of a tracker, each number once.

    The file ``trackers.json`` in the run directory holds the id of the tracker's run, so that a
    test and every resume continue it, even without a checkpoint. A resumed run does not send again
    what the tracker holds. Numbers that a kill may have lost on the way are in the checkpoint, and
    the resumed run sends them.

    A subclass names the server and project in `target`, and opens its writer with `run_id`.
    """

    def __init__(self, every: Every | int | str = 50, metrics: Sequence[str] | None = None) -> None:
        super().__init__(every, metrics)
        self.run_id: str | None = None
        self._is_training = False
        self._sent: deque[Scalars] = deque(maxlen=MAX_SENT)
        self._undelivered: list[
            Scalars
        ] = []  # Sent shortly before the checkpoint that was resumed.

    def target(self) -> str:
        """Return the server and project; with another target, a new run of the tracker starts."""
        raise NotImplementedError

    def open_tracker(self, run: Run) -> tuple[Writer, str]:
        """Open the writer, for `run_id` if it is set; return it with the id of its run."""
        raise NotImplementedError

    def open(self, run: Run) -> Writer:
        entries = _read(run.dir / FILE)
        own = entries.get(self.name)
        self.run_id = own["run"] if own and own["target"] == self.target() else None
        continues = self.run_id is not None
        writer, self.run_id = self.open_tracker(run)
        # Before the first number is sent: a kill after that must not leave a run without its id.
        entries[self.name] = {"target": self.target(), "run": self.run_id}
        write_text(run.dir / FILE, json.dumps(entries, indent=2) + "\n")
        # A test makes no step again, so that all of its numbers are new.
        return SkipWritten(writer) if continues and self._is_training else writer

    def state_dict(self) -> dict[str, object]:
        now = time()
        # Also those of the last checkpoint: a second one may come before they are sent.
        recent = [
            *self._undelivered,
            *(record for record in self._sent if now - record.time < DELIVERY_SECONDS),
        ]
        return {"unsure": [[dict(r.values), r.step, r.epoch, r.phase, r.span] for r in recent]}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        rows = cast("Sequence[Sequence[object]]", state.get("unsure", ()))
        self._undelivered = [Scalars(*row) for row in rows]  # type: ignore[arg-type]

    def before_train(self, run: Run) -> None:
        self._is_training = True
        super().before_train(run)
        undelivered, self._undelivered = self._undelivered, []
        if self._writer is not None and undelivered:
            self._send(undelivered)

    def after_run(self, run: Run) -> None:
        super().after_run(run)
        self._is_training = False

    def _send(self, records: Sequence[Record]) -> None:
        # Not images and tables: what is remembered here is part of the checkpoint.
        self._sent += [record for record in records if isinstance(record, Scalars)]
        super()._send(records)


def _read(path: Path) -> dict[str, dict[str, str]]:
    """Read the tracker runs of a run; a damaged file counts as empty."""
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(entries, dict):
        return {}
    return {
        name: entry
        for name, entry in entries.items()
        if isinstance(entry, dict)
        and all(isinstance(entry.get(key), str) for key in ("target", "run"))
    }
