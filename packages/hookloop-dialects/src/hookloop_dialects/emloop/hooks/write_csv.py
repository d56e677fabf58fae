"""`WriteCSV`: write the epoch's data as a table."""

from __future__ import annotations

import csv
import io
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import cast

import numpy as np

from hookloop.dialects import append, safe_row
from hookloop_dialects.emloop.epoch_data import EpochData as OfRun
from hookloop_dialects.emloop.hooks.abstract_hook import AbstractHook
from hookloop_dialects.emloop.types import EpochData

_log = logging.getLogger()  # emloop logs with the root logger.


class WriteCSV(AbstractHook):
    """Append a line per epoch: the epoch, then ``<stream>_<variable>`` for each of them.

    A resumed run in the same directory continues the same table.

    Args:
        output_dir: Directory of the file.
        output_file: Name of the file.
        delimiter: Separator of the columns.
        default_value: Written for a value that is missing or not a number.
        variables: Their names; None for those of the first stream and the run's own metrics.
        on_unknown_type: What to do with a value that is not a number: ``error``, ``warn``,
            ``default``.
        on_missing_variable: What to do with a missing value.
        kwargs: See `AbstractHook`.
    """

    UNKNOWN_TYPE_ACTIONS = ("error", "warn", "default")
    MISSING_VARIABLE_ACTIONS = ("error", "warn", "default")

    def __init__(
        self,
        output_dir: str,
        output_file: str = "training.csv",
        delimiter: str = ",",
        default_value: str = "",
        variables: Iterable[str] | None = None,
        on_unknown_type: str = "default",
        on_missing_variable: str = "error",
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        assert on_unknown_type in self.UNKNOWN_TYPE_ACTIONS, on_unknown_type
        assert on_missing_variable in self.MISSING_VARIABLE_ACTIONS, on_missing_variable
        self._file_path = Path(output_dir) / output_file
        self._delimiter = delimiter
        self._default_value = default_value
        self._variables = None if variables is None else list(variables)
        self._on_unknown_type = on_unknown_type
        self._on_missing_variable = on_missing_variable
        self._streams: list[str] = []
        self.reads_epoch_data = tuple(self._variables or ())

    # With the columns restored, a resumed run does not write a second header as emloop does.
    def state_dict(self) -> dict[str, object]:
        return {"variables": self._variables, "streams": self._streams}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        self._variables = cast("list[str] | None", state["variables"])
        self._streams = list(cast("list[str]", state["streams"]))

    def after_epoch(self, epoch_id: int, epoch_data: EpochData) -> None:
        if not self._streams:
            self._write_header(epoch_data)
        # An evaluation outside training is not an epoch: it has no row.
        if isinstance(epoch_data, OfRun) and self._streams[0] not in epoch_data:
            return
        self._write_row(epoch_id, epoch_data)

    # These two are methods of emloop's class, which subclasses call and override.

    def _write_header(self, epoch_data: EpochData) -> None:
        self._streams = list(epoch_data)
        if not self._variables:
            names = list(next(iter(epoch_data.values())))
            # What the engine computes in evaluations only is not in the training stream.
            if isinstance(epoch_data, OfRun):
                others = [name for variables in epoch_data.values() for name in variables]
                names += [name for name in others if epoch_data.leaves_out(self._streams[0], name)]
            self._variables = list(dict.fromkeys(names))
        titles = [f"{stream}_{name}" for stream in self._streams for name in self._variables]
        # The first title has quotes in emloop's files, so the csv module must not add more.
        self._append(['"epoch_id"', *titles], quoted=False)

    def _write_row(self, epoch_id: int, epoch_data: EpochData) -> None:
        values = [
            self._value(epoch_data, stream, name)
            for stream in self._streams
            for name in self._variables or ()
        ]
        self._append([epoch_id, *values])

    def _value(self, epoch_data: EpochData, stream: str, name: str) -> object:
        # A stream that is not evaluated in every epoch leaves its columns empty in the others.
        # So does the training stream those of metrics that only evaluations compute.
        if isinstance(epoch_data, OfRun) and (
            stream not in epoch_data or epoch_data.leaves_out(stream, name)
        ):
            return self._default_value
        if stream not in epoch_data or name not in epoch_data[stream]:
            self._report(self._on_missing_variable, KeyError(f"there is no '{stream}_{name}'."))
            return self._default_value
        value = epoch_data[stream][name]
        # A variable of ComputeStats has one column, so one of its statistics is chosen.
        if isinstance(value, dict):
            value = value.get("mean", value.get("nanmean", value))
        if not np.isscalar(value):
            self._report(self._on_unknown_type, TypeError(f"'{name}' is not a single number."))
            return self._default_value
        return value

    def _report(self, action: str, error: Exception) -> None:
        if action == "error":
            raise error
        if action == "warn":
            _log.warning("%s: %s", self._file_path.name, error)

    def _append(self, row: Iterable[object], *, quoted: bool = True) -> None:
        text = io.StringIO()
        if quoted:
            csv.writer(text, delimiter=self._delimiter, lineterminator="\n").writerow(safe_row(row))
        else:
            text.write(self._delimiter.join(map(str, safe_row(row))) + "\n")
        append(self._file_path, text.getvalue())
