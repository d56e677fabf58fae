"""``mmengine.evaluator``: metrics over all samples of an evaluation."""

from __future__ import annotations

from hookloop_mmengine.evaluator.evaluator import Evaluator, get_metric_value
from hookloop_mmengine.evaluator.metric import BaseMetric, DumpResults

__all__ = ["BaseMetric", "DumpResults", "Evaluator", "get_metric_value"]
