"""`WriteWandb`: the numbers of a run in Weights & Biases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from hookloop.errors import HookError, nearest
from hookloop.every import Every
from hookloop.hooks.writing._write_to_tracker import WriteToTracker
from hookloop.runs.files import reject_links
from hookloop.writers.base import Writer, require
from hookloop.writers.wandb import Wandb, check_key

if TYPE_CHECKING:
    from hookloop.engine.run import Run

MODES = ("online", "offline", "disabled")


class WriteWandb(WriteToTracker):
    """Write to Weights & Biases: numbers, images, histograms, text, tables and the config.

    A test and a resumed run continue the same wandb run. A resume does not send again what wandb
    already has. Its files are in the run directory; offline, each part of the run has a folder
    there, and ``wandb sync`` joins them into one run.

    Args:
        project: The project; wandb's default if not given.
        every: Interval in training, in iterations or time.
        metrics: Names or patterns of the numbers to write; all by default.
        mode: ``"offline"`` keeps everything on disk, for ``wandb sync`` later; by default what
            wandb's environment variables say.
        run_name: The name of the run in wandb; the name of the run directory by default.
        options: Further arguments of ``wandb.init``: ``entity``, ``group``, ``tags``, ``notes``.

    Example:
        >>> WriteWandb(project="digits", mode="offline").project
        'digits'
    """

    def __init__(
        self,
        project: str | None = None,
        every: Every | int | str = 50,
        *,
        metrics: Sequence[str] | None = None,
        mode: Literal["online", "offline", "disabled"] | None = None,
        run_name: str | None = None,
        options: Mapping[str, object] | None = None,
    ) -> None:
        if mode is not None and mode not in MODES:
            hint = nearest(mode, MODES)
            raise HookError(f"WriteWandb: mode={mode!r} must be one of {', '.join(MODES)}.{hint}")
        require("wandb", extra="wandb", who="WriteWandb")
        super().__init__(every, metrics)
        self.project = project
        self.mode = mode
        self.run_name = run_name
        self.options = dict(options or {})

    def check_setup(self) -> None:
        check_key(self.mode)

    def target(self) -> str:
        return f"{self.options.get('entity', '')}/{self.project or ''}"

    def open_tracker(self, run: Run) -> tuple[Writer, str]:
        reject_links(run.dir / "wandb", run.dir)
        # The user's options win, also over the name.
        options = {"name": self.run_name or run.dir.name, **self.options}
        writer = Wandb(run.dir, self.project, run_id=self.run_id, mode=self.mode, **options)
        return writer, writer.run_id
