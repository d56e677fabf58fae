"""`WriteTrackio`: the run in trackio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from hookloop.every import Every
from hookloop.hooks.write_to import WriteTo
from hookloop.writers.base import Writer, require
from hookloop.writers.trackio import Trackio

if TYPE_CHECKING:
    from hookloop.core.run import Run


class WriteTrackio(WriteTo):
    """Write to trackio, the local-first tracker: numbers, pictures, histograms, text, tables.

    A resumed run goes on with the same trackio run. Trackio keeps all projects in one directory,
    which the environment variable ``TRACKIO_DIR`` names.

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
        self._set_up(every, metrics)
        self.project = project
        self.run_name = run_name
        self.options = dict(options or {})

    def state_dict(self) -> dict[str, object]:
        return {"run_name": self.run_name}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        self.run_name = cast("str | None", state["run_name"])

    def open(self, run: Run) -> Writer:
        name = self.run_name or run.dir.name
        writer = Trackio(self.project, run_name=name, config=run.config, **self.options)
        self.run_name = writer.run_name
        return writer
