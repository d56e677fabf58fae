"""`TensorBoard`: records as TensorBoard events."""

from __future__ import annotations

import copy
import logging
import time
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch

from hookloop.runs.plain_yaml import dump
from hookloop.writers.base import Writer, require
from hookloop.writers.records import (
    Config,
    Graph,
    Histogram,
    Image,
    Record,
    Scalars,
    Table,
    Text,
)

_log = logging.getLogger("hookloop")


class TensorBoard(Writer):
    """Writes an event file: scalars, images, histograms, text, graph and hyper-parameters.

    Args:
        directory: The directory for ``tensorboard --logdir``.
        purge_step: Hide events of an earlier part of the run from this step on.
    """

    name = "tensorboard"

    def __init__(self, directory: Path, purge_step: int | None = None) -> None:
        require("tensorboard", extra="tensorboard", who="TensorBoard")
        from torch.utils.tensorboard import SummaryWriter

        self._directory, self._purge_step = directory, purge_step
        _wait_for_next_second(directory)
        self._events = SummaryWriter(str(directory), purge_step=purge_step)
        self._settings: dict[str, object] = {}
        self._results: dict[str, float] = {}

    def write(self, records: Iterable[Record]) -> None:
        """Append an event for each record."""
        for record in records:
            self._write(record)

    def held(self) -> Mapping[str, int]:
        """Return the newest step of each name among the events that are not hidden."""
        from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
        from tensorboard.compat.proto.event_pb2 import Event

        held: dict[str, int] = {}
        for path in sorted(self._directory.glob("*tfevents*")):
            for raw in RawEventFileLoader(str(path)).Load():
                event = Event.FromString(raw)
                if self._purge_step is not None and event.step >= self._purge_step:
                    continue
                for value in event.summary.value:
                    # `add_text` adds this to the name.
                    name = value.tag.removesuffix("/text_summary")
                    held[name] = max(event.step, held.get(name, -1))
        return held

    def flush(self) -> None:
        """Write the events to disk."""
        self._events.flush()

    def close(self) -> None:
        """Add the hyper-parameters with the run's results, and close the file."""
        if self._settings:
            self._add_hyper_parameters()
        self._events.close()

    def _write(self, record: Record) -> None:
        events = self._events
        match record:
            case Scalars():
                for name, value in record.values.items():
                    events.add_scalar(name, value, record.step, walltime=record.time)
                # For the table of hyper-parameters, which compares runs by their evaluations.
                if record.phase != "train":
                    self._results |= record.values
            case Image():
                events.add_image(record.name, record.pixels, record.step, dataformats="HWC")
            case Histogram() if len(record.values):
                events.add_histogram(record.name, record.values, record.step)
            case Text():
                events.add_text(record.name, record.text, record.step)
            case Table():
                events.add_text(record.name, record.to_markdown(), record.step)
            case Config():
                self._settings = record.flat()
                text = dump(record.values)
                events.add_text("config", f"```yaml\n{text}```", 0)
            case Graph():
                self._add_graph(record)
            case _:
                pass

    def _add_graph(self, record: Graph) -> None:
        # A copy, and its own random numbers: drawing a model must not change its training.
        try:
            model = copy.deepcopy(record.model).eval()
            with torch.random.fork_rng(), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Tracing warns about every branch in a model.
                self._events.add_graph(model, record.inputs)
        except Exception as error:  # noqa: BLE001 - not every model can be traced
            _log.warning("The model's graph cannot be drawn: %s: %s", type(error).__name__, error)

    def _add_hyper_parameters(self) -> None:
        from torch.utils.tensorboard.summary import hparams

        settings = {
            name: value if isinstance(value, bool | int | float | str) else str(value)
            for name, value in self._settings.items()
        }
        # The summaries themselves: `add_hparams` would create another run beside this one.
        for summary in hparams(settings, self._results):  # type: ignore[no-untyped-call]
            self._events._get_file_writer().add_summary(summary)  # type: ignore[no-untyped-call]


def _wait_for_next_second(directory: Path) -> None:
    """Wait until a new event file will be read after the existing ones, for a second at most.

    Event files are read in the order of their names, which hold the second and then the process
    number. A file that is read too early would be hidden by an older part of the run.
    """
    names = [path.name.split("tfevents.")[-1] for path in directory.glob("*tfevents.*")]
    seconds = [int(name.split(".")[0]) for name in names if name.split(".")[0].isdecimal()]
    newest = max(seconds, default=0)
    while (
        0 <= newest - int(time.time()) <= 1
    ):  # If it is further ahead, it comes from another clock.
        time.sleep(0.02)
