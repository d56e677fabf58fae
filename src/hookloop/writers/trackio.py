"""`Trackio`: records in trackio, the local-first tracker."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable, Mapping
from typing import cast

from hookloop.runs.records import plain
from hookloop.writers.base import Writer, require
from hookloop.writers.records import Histogram, Image, Record, Scalars, Table, Text


class Trackio(Writer):
    """Logs to one trackio run, in the database at ``TRACKIO_DIR``.

    Args:
        project: The project that ``trackio show --project`` opens.
        run_name: Name of the run; an existing one is continued.
        config: Shown with the run; trackio accepts it only at the start.
        options: Further arguments of ``trackio.init``: ``group``, ``space_id``.
    """

    name = "trackio"

    def __init__(
        self,
        project: str = "hookloop",
        *,
        run_name: str | None = None,
        config: Mapping[str, object] | None = None,
        **options: object,
    ) -> None:
        self._trackio = require("trackio", extra="trackio", who="Trackio")
        arguments: dict[str, object] = {
            "name": run_name,
            "config": plain(config or {}),
            "resume": "allow",
            "embed": False,
        }
        with contextlib.redirect_stdout(
            io.StringIO()
        ):  # The screen belongs to the progress of the run.
            self._run = self._trackio.init(project, **(arguments | options))
        self.run_name: str = self._run.name
        # A Space or a server holds the numbers itself: there is no local database to look into.
        self._is_local = not {"space_id", "server_url"} & set(options)

    def write(self, records: Iterable[Record]) -> None:
        """Log each record."""
        for record in records:
            if values := self._values(record):
                self._run.log(values, step=getattr(record, "step", None))

    def held(self) -> Mapping[str, int]:
        """Return the newest step of each name; of a remote run, the step before its last."""
        # Of a remote run only the last step is known, and not which names it has.
        if not self._is_local:
            return {"": self._run._next_step - 2}
        held: dict[str, int] = {}
        logs = _storage().get_logs(self._run.project, self.run_name)  # type: ignore[attr-defined]
        for log in logs:
            held |= {name: max(log["step"], held.get(name, -1)) for name in log}
        return held

    def close(self) -> None:
        """End the trackio run."""
        with contextlib.redirect_stdout(io.StringIO()):
            if self._trackio.context_vars.current_run.get() is self._run:
                self._trackio.finish()  # Also clears it: trackio would end it again at exit.
            else:
                self._run.finish()

    def _values(self, record: Record) -> dict[str, object]:
        trackio = self._trackio
        match record:
            case Scalars():
                return {**record.values, "epoch": record.epoch}
            case Image():
                # trackio passes it to PIL, which rejects an axis of one channel.
                pixels = record.pixels
                colour = pixels.repeat(3, axis=-1) if pixels.shape[-1] == 1 else pixels
                return {record.name: trackio.Image(colour, caption=record.caption or None)}
            case Histogram() if len(record.values):
                return {record.name: trackio.Histogram(record.values)}
            case Text():
                return {record.name: trackio.Markdown(record.text)}
            case Table():
                rows = [list(row) for row in record.rows]
                return {record.name: trackio.Table(columns=list(record.columns), data=rows)}
            case _:
                return {}


def free_name(project: str, name: str) -> str:
    """Return a name that no run of a local project has; add a number if necessary."""
    names = set(_storage().get_runs(project))  # type: ignore[attr-defined]
    count = 2
    free = name
    while free in names:
        free, count = f"{name}-{count}", count + 1
    return free


def _storage() -> type:
    require("trackio", extra="trackio", who="Trackio")
    from trackio.sqlite_storage import SQLiteStorage

    return cast("type", SQLiteStorage)
