"""`WriteWandb`: the run in Weights & Biases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, cast

from hookloop.errors import HookError, nearest
from hookloop.every import Every
from hookloop.hooks.write_to import WriteTo
from hookloop.runs.files import reject_links
from hookloop.writers.base import Writer, require
from hookloop.writers.wandb import Wandb

if TYPE_CHECKING:
    from hookloop.core.run import Run

MODES = ("online", "offline", "disabled")


class WriteWandb(WriteTo):
    """Write to Weights & Biases: numbers, pictures, histograms, text, tables and the config.

    A resumed run goes on with the same wandb run. Its files are in the run directory.

    Args:
        project: The project; wandb's default when not given.
        every: How often to write in training, in iterations or time.
        metrics: Names or patterns of the numbers to write; all when not given.
        mode: ``"offline"`` keeps everything on disk, for ``wandb sync`` later; by default what
            the environment says.
        run_name: How wandb shows the run; the name of the run directory when not given.
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
            raise HookError(f"WriteWandb: mode={mode!r}: write {', '.join(MODES)}.{hint}")
        require("wandb", extra="wandb", who="WriteWandb")
        self._set_up(every, metrics)
        self.project = project
        self.mode = mode
        self.run_name = run_name
        self.options = dict(options or {})
        self._run_id: str | None = None

    def state_dict(self) -> dict[str, object]:
        return {"run_id": self._run_id}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        self._run_id = cast("str | None", state["run_id"])

    def open(self, run: Run) -> Writer:
        reject_links(run.dir / "wandb", run.dir)
        options = {"name": self.run_name or run.dir.name, **self.options}
        writer = Wandb(run.dir, self.project, run_id=self._run_id, mode=self.mode, **options)
        self._run_id = writer.run_id
        return writer
