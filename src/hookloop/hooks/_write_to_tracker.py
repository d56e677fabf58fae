"""`WriteToTracker`: the base of the hooks that write to a service, which takes nothing back."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from time import time
from typing import TYPE_CHECKING, cast

from hookloop.every import Every
from hookloop.hooks._writing import Writing
from hookloop.runs.files import write_text
from hookloop.writers.base import Writer
from hookloop.writers.once import Once
from hookloop.writers.records import Record, Scalars

if TYPE_CHECKING:
    from pathlib import Path

    from hookloop.core.run import Run

FILE = "trackers.json"
UNSURE = 30.0
"""Seconds after which a service has what it was given, also if the process is killed then."""
MOST = 1000


class WriteToTracker(Writing):
    """Send the run's numbers to a tracker, as one run of it and each number once.

    The run's directory remembers in ``trackers.json`` which run of the tracker it is, so that a
    test and every resume continue it, also if there was no checkpoint yet. What a resumed run makes
    again is not sent again. What a kill may have kept from arriving is in the checkpoint, and is
    sent then.

    A subclass names in `target` where the tracker's runs are kept, and gives `run_id` to the
    writer that it opens.
    """

    def __init__(self, every: Every | int | str = 50, metrics: Sequence[str] | None = None) -> None:
        super().__init__(every, metrics)
        self.run_id: str | None = None
        self._is_training = False
        self._sent: deque[Scalars] = deque(maxlen=MOST)
        self._unsure: list[Scalars] = []  # Sent shortly before the checkpoint that was resumed.

    def target(self) -> str:
        """Name the place, so that another project or server gets a run of its own."""
        raise NotImplementedError

    def open_tracker(self, run: Run) -> tuple[Writer, str]:
        """Make the writer, of `run_id` if it is set, and return it with the id of its run."""
        raise NotImplementedError

    def open(self, run: Run) -> Writer:
        known = _read(run.dir / FILE)
        mine = known.get(self.name)
        self.run_id = mine["run"] if mine and mine["target"] == self.target() else None
        continues = self.run_id is not None
        writer, self.run_id = self.open_tracker(run)
        known[self.name] = {"target": self.target(), "run": self.run_id}
        write_text(run.dir / FILE, json.dumps(known, indent=2) + "\n")
        return Once(writer) if continues and self._is_training else writer

    def state_dict(self) -> dict[str, object]:
        now = time()
        recent = [*self._unsure, *(one for one in self._sent if now - one.time < UNSURE)]
        return {"unsure": [[dict(r.values), r.step, r.epoch, r.phase, r.span] for r in recent]}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        rows = cast("Sequence[Sequence[object]]", state.get("unsure", ()))
        self._unsure = [Scalars(*row) for row in rows]  # type: ignore[arg-type]

    def before_train(self, run: Run) -> None:
        self._is_training = True
        super().before_train(run)
        unsure, self._unsure = self._unsure, []
        if self._writer is not None and unsure:
            self._hand_over(unsure)

    def after_run(self, run: Run) -> None:
        super().after_run(run)
        self._is_training = False

    def _hand_over(self, records: Sequence[Record]) -> None:
        self._sent += [record for record in records if isinstance(record, Scalars)]
        super()._hand_over(records)


def _read(path: Path) -> dict[str, dict[str, str]]:
    """Read which runs of trackers belong to a run; a damaged file counts as none."""
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(known, dict):
        return {}
    return {
        name: entry
        for name, entry in known.items()
        if isinstance(entry, dict)
        and all(isinstance(entry.get(key), str) for key in ("target", "run"))
    }
