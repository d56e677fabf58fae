"""`WriteClearML`: the numbers of a run in ClearML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from hookloop.errors import HookError, nearest
from hookloop.every import Every
from hookloop.hooks.writing._write_to_tracker import WriteToTracker
from hookloop.runs.files import reject_links
from hookloop.writers.base import Writer
from hookloop.writers.clearml import ClearML, check_server, load_clearml

if TYPE_CHECKING:
    from hookloop.engine.run import Run

MODES = ("online", "offline")


class WriteClearML(WriteToTracker):
    """Write to ClearML: numbers, images, histograms, text, tables, and the config as parameters.

    A test and a resumed run continue the same task. A resume does not send again what ClearML
    already has. Offline, the task is a folder in ``clearml`` in the run directory, for
    ``Task.import_offline_session``. ClearML allows one task per process, does not show NaN, and
    keeps the source of the started script on its own.

    Args:
        project: The project.
        every: Interval in training, in iterations or time.
        metrics: Names or patterns of the numbers to write; all by default.
        mode: ``"offline"`` keeps everything on disk.
        run_name: The name of the task; the name of the run directory by default.
        options: Further arguments of ``Task.init``: ``tags``, ``output_uri``. What ClearML would
            log on its own is off unless it is named here.

    Example:
        >>> WriteClearML(project="digits", mode="offline").project
        'digits'
    """

    def __init__(
        self,
        project: str = "hookloop",
        every: Every | int | str = 50,
        *,
        metrics: Sequence[str] | None = None,
        mode: Literal["online", "offline"] = "online",
        run_name: str | None = None,
        options: Mapping[str, object] | None = None,
    ) -> None:
        if mode not in MODES:
            hint = nearest(mode, MODES)
            raise HookError(f"WriteClearML: mode={mode!r} must be one of {', '.join(MODES)}.{hint}")
        load_clearml("WriteClearML")
        super().__init__(every, metrics)
        self.project = project
        self.mode = mode
        self.run_name = run_name
        self.options = dict(options or {})

    def check_setup(self) -> None:
        check_server(self.mode)

    def target(self) -> str:
        return f"{self.mode}/{self.project}"

    def open_tracker(self, run: Run) -> tuple[Writer, str]:
        directory = run.dir / "clearml"
        reject_links(directory, run.dir)
        writer = ClearML(
            directory,
            self.project,
            run_id=self.run_id,
            mode=self.mode,
            name=self.run_name or run.dir.name,
            **self.options,
        )
        return writer, writer.run_id
