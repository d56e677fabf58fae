"""Records in Weights & Biases."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hookloop.runs.records import plain
from hookloop.writers.base import Writer, require
from hookloop.writers.records import Config, Histogram, Image, Record, Scalars, Table, Text

STEP = "iter"


class Wandb(Writer):
    """Sends to one wandb run; ``mode="offline"`` keeps it on disk, for ``wandb sync``.

    The iteration is a metric of its own and the axis of all others, because wandb's internal step
    cannot go back, and a resumed run makes some iterations once more.

    Args:
        directory: Where wandb keeps its files.
        project: The project; wandb's default when not given.
        run_id: The run to go on with; a new one when not given.
        mode: ``"online"``, ``"offline"`` or ``"disabled"``; by default what the environment says.
        options: Further arguments of ``wandb.init``: ``entity``, ``group``, ``tags``, ``notes``.
    """

    name = "wandb"

    def __init__(
        self,
        directory: Path,
        project: str | None = None,
        *,
        run_id: str | None = None,
        mode: str | None = None,
        **options: object,
    ) -> None:
        self._wandb = require("wandb", extra="wandb", who="Wandb")
        arguments: dict[str, object] = {
            "dir": str(directory),
            "project": project,
            "id": run_id,
            "resume": "allow" if run_id else None,
            "mode": mode,
            # wandb would else print, take over the terminal, and end the run of another writer.
            "settings": self._wandb.Settings(silent=True, console="off"),
            "reinit": "create_new",
        }
        self._run = self._wandb.init(**(arguments | options))
        self.run_id: str = self._run.id
        self._run.define_metric(STEP, hidden=True)
        self._run.define_metric("*", step_metric=STEP)

    def write(self, records: Iterable[Record]) -> None:
        """Log each record."""
        for record in records:
            if isinstance(record, Config):
                settings = plain(record.values)
                self._run.config.update(settings, allow_val_change=True)
            elif values := self._values(record):
                self._run.log(values | {STEP: getattr(record, "step", 0) or 0})

    def close(self) -> None:
        """End the wandb run."""
        self._run.finish()

    def _values(self, record: Record) -> dict[str, object]:
        wandb = self._wandb
        match record:
            case Scalars():
                return {**record.values, "epoch": record.epoch}
            case Image():
                # A grey picture has no axis of channels there.
                pixels = (
                    record.pixels.squeeze(-1) if record.pixels.shape[-1] == 1 else record.pixels
                )
                return {record.name: wandb.Image(pixels, caption=record.caption or None)}
            case Histogram() if len(record.values):
                return {record.name: wandb.Histogram(record.values)}
            case Text():
                return {record.name: wandb.Html(f"<pre>{_escape(record.text)}</pre>")}
            case Table():
                rows = [list(row) for row in record.rows]
                return {record.name: wandb.Table(columns=list(record.columns), data=rows)}
            case _:
                return {}


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
