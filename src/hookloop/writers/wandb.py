"""`Wandb`: records in Weights & Biases."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import cast

from hookloop.errors import HookError
from hookloop.runs.records import plain
from hookloop.writers.base import Writer, require
from hookloop.writers.records import Config, Histogram, Image, Record, Scalars, Table, Text

STEP = "iter"


class Wandb(Writer):
    """Sends to one wandb run; ``mode="offline"`` keeps it on disk, for ``wandb sync``.

    The iteration is a metric and the axis of all others, because wandb's own step counts rows.

    Args:
        directory: The directory for wandb's files.
        project: The project; wandb's default if not given.
        run_id: The wandb run to continue; a new one by default.
        mode: ``"online"``, ``"offline"`` or ``"disabled"``; from the environment by default.
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
            "resume": "allow",
            "mode": mode,
            # Otherwise wandb prints, captures the terminal, and ends the run of another writer.
            "settings": _settings(self._wandb),
            "reinit": "create_new",
        }
        self._run = self._wandb.init(**(arguments | options))
        self.run_id: str = self._run.id
        self._held: dict[str, int] = {}
        # Offline, wandb numbers the rows of each part from 0, and a sync would drop a second part.
        self._row = self._read_parts(directory) if run_id and self._run.offline else None
        if run_id and not self._run.offline and STEP in self._run.summary:
            # Which names the service has of its last iteration is not known.
            self._held = {"": int(self._run.summary[STEP]) - 1}
        # Hidden, since a chart of the iteration over itself shows nothing.
        self._run.define_metric(STEP, hidden=True)
        self._run.define_metric("*", step_metric=STEP)

    def write(self, records: Iterable[Record]) -> None:
        """Log each record."""
        for record in records:
            if isinstance(record, Config):
                settings = plain(record.values)
                self._run.config.update(settings, allow_val_change=True)
            elif values := self._values(record):
                self._log(values | {STEP: getattr(record, "step", 0) or 0})

    def held(self) -> Mapping[str, int]:
        """Return the newest iteration of each name; online, the one before the last."""
        return self._held

    def close(self) -> None:
        """End the wandb run."""
        self._run.finish()

    def _log(self, values: dict[str, object]) -> None:
        if self._row is None:
            self._run.log(values)
        else:
            # With a step of its own, wandb would wait for more values of the same row.
            self._run.log(values, step=self._row, commit=True)
            self._row += 1

    def _read_parts(self, directory: Path) -> int:
        """Read the earlier parts of an offline run; return the number of the next row."""
        row = 0
        for values in read_rows(directory, self.run_id):
            step = int(cast("int", values.get(STEP, 0)))
            self._held |= {n: max(step, self._held.get(n, -1)) for n in values if n[0] != "_"}
            row = max(row, int(cast("int", values.get("_step", 0))) + 1)
        return row

    def _values(self, record: Record) -> dict[str, object]:
        wandb = self._wandb
        match record:
            case Scalars():
                return {**record.values, "epoch": record.epoch}
            case Image():
                # wandb wants no channel axis for a grey image.
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


FLUSH = "x_transaction_log_flush_interval"


def _settings(wandb: ModuleType) -> object:
    """Return settings that keep wandb silent and let it write to disk often."""
    # A kill loses what it has in memory. Older versions do not have this setting.
    often = {FLUSH: 1.0} if FLUSH in wandb.Settings.model_fields else {}
    return wandb.Settings(silent=True, console="off", **often)


def check_key(mode: str | None) -> None:
    """Reject an online run without an API key; this neither prompts nor uses the network."""
    wandb = require("wandb", extra="wandb", who="Wandb")
    from wandb.sdk.lib import wbauth

    settings = wandb.setup().settings
    if (mode or settings.mode) in ("offline", "disabled", "dryrun"):
        return
    try:
        found = wbauth.authenticate_session(
            host=settings.base_url, source="hookloop", prompt=False, update_session=False
        )
    except wandb.errors.AuthenticationError as error:
        raise HookError(f"wandb: the API key is not valid: {error}") from error
    if found is None:
        raise HookError(
            "wandb: there is no API key, so nothing can be sent: run 'wandb login', set "
            "WANDB_API_KEY, or write mode='offline' to keep the run on disk for 'wandb sync'."
        )


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


# The format of LevelDB's log: blocks of records, each with a checksum, a size and a kind. A record
# that crosses a block is split into pieces. The file itself starts with a header of the same size.
BLOCK = 32768
HEADER = 7
WHOLE, LAST = 1, 4


def read_rows(directory: Path, run_id: str) -> Iterator[Mapping[str, object]]:
    """Yield the history rows of all parts of a run in a directory, in order."""
    from wandb.proto import wandb_internal_pb2

    # The names of two parts that started in the same second differ by a number at the end.
    for path in sorted(directory.glob(f"wandb/*run-*-{run_id}*/run-{run_id}.wandb")):
        for content in _split_records(path.read_bytes()):
            record = wandb_internal_pb2.Record()  # type: ignore[attr-defined]
            record.ParseFromString(content)
            if record.WhichOneof("record_type") == "history":
                yield {
                    item.key or "/".join(item.nested_key): json.loads(item.value_json)
                    for item in record.history.item
                }


def _split_records(data: bytes) -> Iterator[bytes]:
    """Yield the records of a log; the first incomplete one ends it, as after a kill."""
    at, part = HEADER, b""
    while at + HEADER <= len(data):
        left = BLOCK - at % BLOCK
        if left < HEADER:  # Too small for another record: padded with zeros.
            at += left
            continue
        _, size, kind = struct.unpack("<IHB", data[at : at + HEADER])
        piece = data[at + HEADER : at + HEADER + size]
        if kind == 0 or len(piece) < size:
            return
        part += piece
        at += HEADER + size
        if kind in (WHOLE, LAST):
            yield part
            part = b""
