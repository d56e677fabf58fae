"""`WriteComet`: the numbers of a run in Comet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from hookloop.errors import HookError, nearest
from hookloop.every import Every
from hookloop.hooks.writing._write_to_tracker import WriteToTracker
from hookloop.runs.files import reject_links
from hookloop.writers.base import Writer
from hookloop.writers.comet import Comet, check_key, load_comet

if TYPE_CHECKING:
    from hookloop.engine.run import Run

MODES = ("online", "offline")


class WriteComet(WriteToTracker):
    """Write to Comet: numbers, images, histograms, text, tables, and the config as parameters.

    A test and a resumed run continue the same experiment. A resume does not send again what Comet
    already has. Offline, each part of the run is an archive in ``comet`` in the run directory,
    which ``comet upload`` sends; Comet writes it when that part ends, so a killed process leaves
    none.

    Args:
        project: The project; Comet's default if not given.
        every: Interval in training, in iterations or time.
        metrics: Names or patterns of the numbers to write; all by default.
        mode: ``"offline"`` keeps everything on disk.
        run_name: The name of the experiment; the name of the run directory by default.
        options: Further arguments of Comet's experiment: ``workspace``, ``log_git_metadata``. What
            Comet would log on its own is off unless it is named here.

    Example:
        >>> WriteComet(project="digits", mode="offline").project
        'digits'
    """

    def __init__(
        self,
        project: str | None = None,
        every: Every | int | str = 50,
        *,
        metrics: Sequence[str] | None = None,
        mode: Literal["online", "offline"] = "online",
        run_name: str | None = None,
        options: Mapping[str, object] | None = None,
    ) -> None:
        if mode not in MODES:
            hint = nearest(mode, MODES)
            raise HookError(f"WriteComet: mode={mode!r} must be one of {', '.join(MODES)}.{hint}")
        load_comet("WriteComet")
        super().__init__(every, metrics)
        self.project = project
        self.mode = mode
        self.run_name = run_name
        self.options = dict(options or {})

    def check_setup(self) -> None:
        check_key(self.mode)

    def target(self) -> str:
        return f"{self.options.get('workspace', '')}/{self.project or ''}"

    def open_tracker(self, run: Run) -> tuple[Writer, str]:
        directory = run.dir / "comet"
        reject_links(directory, run.dir)
        writer = Comet(
            directory,
            self.project,
            run_id=self.run_id,
            mode=self.mode,
            name=self.run_name or run.dir.name,
            **self.options,
        )
        return writer, writer.run_id
