"""`LossLrMeterLoggingHook` and `OutputCSVHook`: log numbers and predictions."""

from __future__ import annotations

import csv
import io
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from torch import Tensor

from hookloop.dialects import append, safe_row
from hookloop_dialects.vissl.classy_vision.generic.classy_checkpoints import flatten_dict
from hookloop_dialects.vissl.classy_vision.hooks.classy_hook import QuietHook
from hookloop_dialects.vissl.views import Meter

if TYPE_CHECKING:
    from hookloop_dialects.vissl.task import Task

_log = logging.getLogger("classy_vision")


class LossLrMeterLoggingHook(QuietHook):
    """Log loss, meters and learning rate within train phases and at the end of each phase.

    Args:
        log_freq: Batches of a train phase between two lines; None for no lines within a phase.
    """

    def __init__(self, log_freq: int | None = None) -> None:
        super().__init__()
        if log_freq is not None and log_freq < 1:
            raise ValueError(f"log_freq must be at least 1, not {log_freq}.")
        self.log_freq = log_freq

    def on_step(self, task: Task) -> None:
        if self.log_freq is None or not task.train:
            return
        within = task.run.progress.iter_in_epoch
        if within and within % self.log_freq == 0:
            # Within a phase, ClassyVision has not combined the meters of all processes.
            self._log(task, "Approximate meters")

    def on_phase_end(self, task: Task) -> None:
        self._log(task, "Synced meters")

    def _log(self, task: Task, title: str) -> None:
        index = task.train_phase_idx if task.train else task.eval_phase_idx
        losses = task.losses
        meters = ", ".join(f"{name}: {value:.6g}" for name, value in _values(task).items())
        rate = float(cast("float", task.optimizer.options_view.lr)) if task.train else None
        _log.info(
            "%s: [rank: %d, %s phase: %d, %d%% done], loss: %.6g, %s%s",
            title,
            task.run.world.rank,
            task.phase_type,
            index,
            _percent(task),
            sum(losses) / max(1, len(losses)),
            meters,
            f", lr: {rate:.6g}" if rate is not None else "",
        )


def _values(task: Task) -> dict[str, float]:
    """Return the numbers of all meters by name."""
    found: dict[str, float] = {}
    for meter in task.meters:
        # A metric of the Trainer has one value, under its own name.
        own = meter.value[meter.name] if isinstance(meter, Meter) else None
        found |= {meter.name: own} if own is not None else flatten_dict(meter.value, meter.name)
    return found


def _percent(task: Task) -> int:
    total = task.num_batches_per_phase
    done = task.run.progress.iter_in_epoch if task.train else len(task.losses)
    return round(100 * done / total) if total > 0 else 100


class OutputCSVHook(QuietHook):
    """Append each sample of a test phase to ``predictions.csv``: id, prediction, target.

    Args:
        folder: Directory of the file.
        id_key: The entry of the batch that identifies a sample.
        delimiter: Separator of the columns.
    """

    def __init__(self, folder: str, id_key: str = "id", delimiter: str = "\t") -> None:
        super().__init__()
        self.output_path = Path(folder) / "predictions.csv"
        self.id_key = id_key
        self.delimiter = delimiter

    # The file is only appended to, so a second run in the same directory adds a second header.
    def on_start(self, task: Task) -> None:
        self._append([("sample_id", "prediction", "target")])

    def on_step(self, task: Task) -> None:
        if task.train:
            return
        sample, output = task.last_batch.sample, task.last_batch.model_output
        target = task.last_batch.target
        if not isinstance(sample, Mapping) or self.id_key not in sample:
            raise KeyError(f"the batch has no '{self.id_key}': set id_key= to the right name.")
        ids = _to_list(sample[self.id_key])
        self._append(zip(ids, _classes(output), _classes(target), strict=True))

    def _append(self, rows: Iterable[Iterable[object]]) -> None:
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=self.delimiter, lineterminator="\n").writerows(
            map(safe_row, rows)
        )
        append(self.output_path, text.getvalue())


def _to_list(values: object) -> list[object]:
    return values.tolist() if isinstance(values, Tensor) else list(cast("Iterable[object]", values))


def _classes(values: object) -> list[object]:
    # Scores, or a one-hot target, which ClassyVision computes and then overwrites.
    if isinstance(values, Tensor) and values.ndim > 1:
        values = values.argmax(1)
    return _to_list(values)
