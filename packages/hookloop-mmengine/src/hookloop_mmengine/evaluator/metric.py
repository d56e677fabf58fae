"""``mmengine.evaluator.BaseMetric``: results of every batch, and metrics at the end."""

from __future__ import annotations

import logging
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from torch import Tensor

from hookloop.dialects import drafted
from hookloop_mmengine.dist import broadcast_object_list, collect_results, is_main_process
from hookloop_mmengine.dist.results import Parts
from hookloop_mmengine.structures import BaseDataElement

_log = logging.getLogger("hookloop")


class BaseMetric(ABC):
    """The base of metrics; a subclass adds entries to ``self.results`` in `process`.

    Args:
        collect_device: The device on which the results of several processes are gathered.
        prefix: Put before the names of the metrics, with a slash.
        collect_dir: Accepted for its name; results are gathered in memory.
    """

    default_prefix: str | None = None

    def __init__(
        self, collect_device: str = "cpu", prefix: str | None = None, collect_dir: object = None
    ) -> None:
        if collect_dir is not None and collect_device != "cpu":
            raise ValueError("`collect_dir` could only be configured when collect_device='cpu'")
        self._dataset_meta: object = None
        self.collect_device = collect_device
        self.results: list[object] = []
        self._parts = Parts()
        self.prefix = prefix or self.default_prefix

    @property
    def dataset_meta(self) -> object:
        """The meta information of the dataset."""
        return self._dataset_meta

    @dataset_meta.setter
    def dataset_meta(self, dataset_meta: object) -> None:
        self._dataset_meta = dataset_meta

    @abstractmethod
    def process(self, data_batch: object, data_samples: Sequence[object]) -> None:
        """Add what the metrics need of one batch and its predictions to ``self.results``."""

    @abstractmethod
    def compute_metrics(self, results: list[object]) -> dict[str, object]:
        """Compute the metrics from the results of all samples."""

    def note_batch(self, batch: int) -> None:
        """Note that the results so far belong to this global batch, or to earlier ones."""
        self._parts.note(batch, len(self.results))

    def evaluate(self, size: int) -> dict[str, object]:
        """Compute the metrics and start again with empty results."""
        if not self.results:
            _log.warning(
                "%s got empty `self.results`. Please ensure that the processed results are "
                "properly added into `self.results` in `process` method.",
                type(self).__name__,
            )
        results = collect_results(self.results, size, self.collect_device, parts=self._parts)
        # The main process computes for all, because only it has the results of all.
        metrics: list[object] = [None]
        if is_main_process():
            computed = self.compute_metrics(results or [])
            if self.prefix:
                computed = {f"{self.prefix}/{key}": value for key, value in computed.items()}
            metrics = [computed]
        broadcast_object_list(metrics)
        self.results.clear()
        self._parts.clear()
        return dict(metrics[0])  # type: ignore[call-overload, no-any-return]


class DumpResults(BaseMetric):
    """Write the predictions to a file that ``pickle.load`` reads.

    Args:
        out_file_path: The file. Tensors in it are on the CPU.
    """

    def __init__(self, out_file_path: str, **kwargs: object) -> None:
        super().__init__(**kwargs)  # type: ignore[arg-type]
        if not out_file_path.endswith((".pkl", ".pickle")):
            raise ValueError("The output file must be a pkl file.")
        self.out_file_path = out_file_path

    def process(self, data_batch: object, data_samples: Sequence[object]) -> None:
        self.results.extend(_on_cpu(sample) for sample in data_samples)

    def compute_metrics(self, results: list[object]) -> dict[str, object]:
        Path(self.out_file_path).parent.mkdir(parents=True, exist_ok=True)
        # A file that is cut off by a crash must not look like a complete one.
        with drafted(Path(self.out_file_path)) as draft:
            draft.write_bytes(pickle.dumps(results))
        return {}


def _on_cpu(value: object) -> object:
    """Return a value with its tensors on the CPU; everything else stays what it is."""
    if isinstance(value, Tensor):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, BaseDataElement):
        return _on_cpu(value.to_dict())
    if isinstance(value, dict):
        return type(value)((key, _on_cpu(part)) for key, part in value.items())
    if isinstance(value, tuple | list):
        parts = [_on_cpu(part) for part in value]
        # A named tuple takes its parts one by one.
        kind = cast("Callable[..., object]", type(value))
        return kind(*parts) if hasattr(value, "_fields") else kind(parts)
    return value


def _to_cpu(data: object) -> object:
    """Return nested data with all tensors on the CPU; metrics of projects import this."""
    if isinstance(data, Tensor | BaseDataElement):
        return data.to("cpu")
    if isinstance(data, list | tuple):
        return type(data)(_to_cpu(value) for value in data)
    if isinstance(data, dict):
        return {key: _to_cpu(value) for key, value in data.items()}
    return data
