"""`WriteTrackio`: the run in trackio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hookloop.every import Every
from hookloop.hooks._write_to_tracker import WriteToTracker
from hookloop.writers.base import Writer, require
from hookloop.writers.trackio import Trackio, free_name

if TYPE_CHECKING:
    from hookloop.core.run import Run


class WriteTrackio(WriteToTracker):
    """Write to trackio, the local-first tracker: numbers, pictures, histograms, text, tables.

    A test and a resumed run continue the same trackio run, and what a resume makes again is not
    sent again. Trackio keeps all projects in one directory, which the environment variable
    ``TRACKIO_DIR`` names. A name that another run has there gets a number.

    Args:
        project: The project that ``trackio show --project`` opens.
        every: How often to write in training, in iterations or time.
        metrics: Names or patterns of the numbers to write; all when not given.
        run_name: How trackio shows the run; the name of the run directory when not given.
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
        # Trackio continues a run by its name, which another directory may have as well.
        name = self.run_id or free_name(self.project, self.run_name or run.dir.name)
        writer = Trackio(self.project, run_name=name, config=run.config, **self.options)
        return writer, writer.run_name
