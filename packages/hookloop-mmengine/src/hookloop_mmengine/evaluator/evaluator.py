"""``mmengine.evaluator.Evaluator``: the metrics of one evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from hookloop.errors import nearest
from hookloop_mmengine.evaluator.metric import BaseMetric

Described = BaseMetric | Mapping[str, object]


class Evaluator:
    """Pass batches to several metrics and collect their results.

    Args:
        metrics: One metric or several, as objects or as dicts that describe them.
    """

    def __init__(self, metrics: Described | Sequence[Described]) -> None:
        from hookloop_mmengine.registry import METRICS

        listed = metrics if isinstance(metrics, Sequence) else [metrics]
        self.metrics = [
            cast("BaseMetric", METRICS.build(entry) if isinstance(entry, Mapping) else entry)
            for entry in listed
        ]
        self._dataset_meta: object = None

    @property
    def dataset_meta(self) -> object:
        """The meta information of the dataset."""
        return self._dataset_meta

    @dataset_meta.setter
    def dataset_meta(self, dataset_meta: object) -> None:
        self._dataset_meta = dataset_meta
        for metric in self.metrics:
            metric.dataset_meta = dataset_meta

    def note_batch(self, batch: int) -> None:
        """Note which global batch was processed last, where processes have parts of each."""
        for metric in self.metrics:
            metric.note_batch(batch)

    def process(self, data_samples: Sequence[object], data_batch: object | None = None) -> None:
        """Pass one batch and its predictions to every metric."""
        # Metrics of MMEngine's projects expect samples as dicts.
        plain = [
            sample.to_dict() if callable(getattr(sample, "to_dict", None)) else sample  # type: ignore[attr-defined]
            for sample in data_samples
        ]
        for metric in self.metrics:
            metric.process(data_batch, plain)

    def evaluate(self, size: int) -> dict[str, object]:
        """Compute all metrics and start again with empty results."""
        results: dict[str, object] = {}
        for metric in self.metrics:
            found = metric.evaluate(size)
            for name in found:
                # One value would silently hide the other.
                if name in results:
                    raise ValueError(
                        f"There are multiple evaluation results with the same metric name {name}. "
                        "Please make sure all metrics have different prefixes."
                    )
            results |= found
        return results

    def offline_evaluate(
        self,
        data_samples: Sequence[object],
        data: Sequence[object] | None = None,
        chunk_size: int = 1,
    ) -> dict[str, object]:
        """Compute the metrics of predictions that were made earlier."""
        for start in range(0, len(data_samples), chunk_size):
            part = slice(start, start + chunk_size)
            self.process(data_samples[part], data[part] if data is not None else None)
        return self.evaluate(len(data_samples))


def get_metric_value(indicator: str, metrics: Mapping[str, object]) -> object:
    """Return the metric of a name, with or without its prefix."""
    if "/" in indicator:
        if indicator not in metrics:
            raise ValueError(
                f'The indicator "{indicator}" is not a metric.{nearest(indicator, metrics)}'
            )
        return metrics[indicator]
    # Without a prefix the name may fit several metrics.
    found = [key for key in metrics if key.rsplit("/", 1)[-1] == indicator]
    if len(found) != 1:
        raise ValueError(f'The indicator "{indicator}" matches {found or "no metric"}.')
    return metrics[found[0]]
