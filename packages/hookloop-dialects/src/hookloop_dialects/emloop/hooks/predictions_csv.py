"""`LogitsToCsv` and `SequenceToCsv`: write the predictions for each example as a table."""

from __future__ import annotations

import csv
import io
import logging
from collections.abc import Iterable, Sequence, Sized
from pathlib import Path

from hookloop.dialects import safe_row, write_text
from hookloop_dialects.emloop.hooks.abstract_hook import AbstractHook
from hookloop_dialects.emloop.hooks.accumulate_variables import variable
from hookloop_dialects.emloop.types import Batch

_log = logging.getLogger()  # emloop logs with the root logger.


class TableHook(AbstractHook):
    """The base of both: collect rows and write them as a table after each epoch."""

    def __init__(
        self, output_file: str, streams: Iterable[str] | None = None, **kwargs: object
    ) -> None:
        super().__init__(**kwargs)
        self._output_file = output_file
        self._streams = None if streams is None else list(streams)
        self._accumulator: list[dict[str, object]] = []

    def after_epoch(self, epoch_id: int, **_: object) -> None:
        # Without rows there are no columns. The table of an earlier epoch stays.
        if not self._accumulator:
            return
        # As one text, because the file is replaced only when it is complete.
        text = io.StringIO()
        names = list(self._accumulator[0])
        table = csv.writer(text, lineterminator="\n")
        table.writerow(safe_row(names))
        table.writerows(safe_row(row[name] for name in names) for row in self._accumulator)
        _log.info("Saving %d rows to %s.", len(self._accumulator), self._output_file)
        write_text(Path(self._output_file), text.getvalue())
        # emloop never clears it, so its table holds the rows of all epochs.
        self._accumulator = []


class LogitsToCsv(TableHook):
    """Write a variable with one number per class: a row per example, a column per class.

    Args:
        variable: The variable.
        class_names: Titles of its columns.
        id_variable: The variable that identifies an example.
        output_file: The file.
        streams: The streams; None for all.
        kwargs: See `AbstractHook`.
    """

    def __init__(
        self,
        variable: str,
        class_names: Sequence[str],
        id_variable: str,
        output_file: str,
        streams: Iterable[str] | None = None,
        **kwargs: object,
    ) -> None:
        super().__init__(output_file, streams, **kwargs)
        assert class_names, "LogitsToCsv needs at least one class name"
        self._variable = variable
        self._class_names = class_names
        self._id_variable = id_variable

    def after_batch(self, stream_name: str, batch_data: Batch) -> None:
        if self._streams is not None and stream_name not in self._streams:
            return
        ids = variable(batch_data, self._id_variable, stream_name)
        logits = variable(batch_data, self._variable, stream_name)
        assert len(ids) == len(logits), f"{len(ids)} ids and {len(logits)} rows of logits"
        for name, numbers in zip(ids, logits, strict=True):
            assert len(numbers) == len(self._class_names), (
                f"{len(numbers)} numbers for {len(self._class_names)} class names"
            )
            classes = dict(zip(self._class_names, numbers, strict=True))
            self._accumulator.append({self._id_variable: name, **classes})


class SequenceToCsv(TableHook):
    """Write variables that are sequences: a row per example and index.

    Args:
        variables: The variables; all have the same length for an example.
        id_variable: The variable that identifies an example.
        output_file: The file.
        pad_mask_variable: A variable that is true for values that are not padding.
        streams: The streams; None for all.
        kwargs: See `AbstractHook`.
    """

    def __init__(
        self,
        variables: Sequence[str],
        id_variable: str,
        output_file: str,
        pad_mask_variable: str | None = None,
        streams: Iterable[str] | None = None,
        **kwargs: object,
    ) -> None:
        super().__init__(output_file, streams, **kwargs)
        assert variables, "SequenceToCsv needs at least one variable"
        self._variables = variables
        self._id_variable = id_variable
        self._pad_mask_variable = pad_mask_variable

    def after_batch(self, stream_name: str, batch_data: Batch) -> None:
        if self._streams is not None and stream_name not in self._streams:
            return
        columns = [variable(batch_data, name, stream_name) for name in self._variables]
        masks = None
        if self._pad_mask_variable is not None:
            masks = variable(batch_data, self._pad_mask_variable, stream_name)
        _check_lengths(columns if masks is None else [*columns, masks])
        for example, name in enumerate(variable(batch_data, self._id_variable, stream_name)):
            rows = zip(*(column[example] for column in columns), strict=True)
            for index, values in enumerate(rows):
                if masks is None or masks[example][index]:
                    row = dict(zip(self._variables, values, strict=True))
                    self._accumulator.append({self._id_variable: name, "index": index, **row})


def _check_lengths(columns: Sequence[Sequence[Sized]]) -> None:
    """Reject variables of different lengths, with emloop's type of error."""
    assert len({len(column) for column in columns}) == 1, "the variables differ in their examples"
    for number, example in enumerate(zip(*columns, strict=True)):
        lengths = [len(sequence) for sequence in example]
        assert len(set(lengths)) == 1, f"the sequences of example {number} have lengths {lengths}"
