"""`WriteTrackio`: the numbers of a run in trackio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hookloop.every import Every
from hookloop.hooks.writing._write_to_tracker import WriteToTracker
from hookloop.writers.base import Writer, require
from hookloop.writers.trackio import Trackio, free_name

if TYPE_CHECKING:
    from hookloop.engine.run import Run


class WriteTrackio(WriteToTracker):
    """Write to trackio, the local-first tracker: numbers, images, histograms, text, tables.

    A test and a resumed run continue the same trackio run. A resume does not send again what
    trackio already has. Trackio keeps all projects in one directory, which the environment variable
    ``TRACKIO_DIR`` names. If another run there has the same name, a number is added.

    Args:
        project: The project that ``trackio show --project`` opens.
        every: Interval in training, in iterations or time.
        metrics: Names or patterns of the numbers to write; all by default.
        run_name: The name of the run in trackio; the name of the run directory by default.
        options: Further arguments of ``trackio.init``: ``group``, ``space_id``.

    Example:
        >>> WriteTrackio(project="digits").project
        'digits'
    """

    def __init__(
        self,
        project: str = "hookloop",
        every: Every | int | str = 50,
        *,
        metrics: Sequence[str] | None = None,
        run_name: str | None = None,
        options: Mapping[str, object] | None = None,
    ) -> None:
        require("trackio", extra="trackio", who="WriteTrackio")
        super().__init__(every, metrics)
        self.project = project
        self.run_name = run_name
        self.options = dict(options or {})

    def target(self) -> str:
        return f"{self.options.get('space_id', '')}/{self.project}"

    def open_tracker(self, run: Run) -> tuple[Writer, str]:
        # Trackio finds a run by its name, and another run directory may have the same name.
        name = self.run_id or free_name(self.project, self.run_name or run.dir.name)
        writer = Trackio(self.project, run_name=name, config=run.config, **self.options)
        return writer, writer.run_name
