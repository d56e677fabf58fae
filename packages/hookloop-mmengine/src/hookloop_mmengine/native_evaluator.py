"""The metrics of a native run as the evaluator that MMEngine's hooks expect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from hookloop.dialects import Meters, internals_of, output_of, pair_of, size_of
from hookloop_mmengine.evaluator import BaseMetric, Evaluator

if TYPE_CHECKING:
    from hookloop import Run


class NativeMetric(BaseMetric):
    """One metric of a native run.

    The engine computes it in its evaluations by itself; here, for a hook that calls the evaluator.

    Args:
        name: Its name.
        metric: The function or object that the user gave.
    """

    def __init__(self, name: str, metric: Any) -> None:  # noqa: ANN401 - the user's
        super().__init__()
        self.name = name
        self.metric = metric

    def process(self, data_batch: object, data_samples: Sequence[object]) -> None:
        self.results.append((data_samples, data_batch))

    def compute_metrics(self, results: list[object]) -> dict[str, object]:
        meters = Meters({self.name: self.metric})
        for outputs, batch in cast("list[tuple[object, object]]", results):
            targets = pair[1] if (pair := pair_of(batch)) else batch
            meters.update(output_of(outputs), targets, size_of(batch))
        return dict(meters.compute())


class NativeEvaluator(Evaluator):
    """The evaluator of a native run.

    Args:
        run: The run.
        phase: ``val`` or ``test``.
    """

    def __init__(self, run: Run, phase: str) -> None:
        super().__init__(
            [NativeMetric(name, metric) for name, metric in internals_of(run).meters.items()]
        )
        streams: Mapping[str, object] = (
            run.val_data if phase == "val" else internals_of(run).test_data
        )
        source = next(iter(streams.values()), None)
        dataset = getattr(getattr(source, "data", None), "dataset", None)
        self.dataset_meta = getattr(dataset, "metainfo", None)

    def process(self, data_samples: object, data_batch: object | None = None) -> None:
        """Pass one batch and what the model returned for it to every metric."""
        for metric in self.metrics:
            metric.process(data_batch, data_samples)  # type: ignore[arg-type]
