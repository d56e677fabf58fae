"""``mmengine.evaluator.utils``: find a metric by its name, under the name that files import."""

from __future__ import annotations

from hookloop_mmengine.evaluator.evaluator import get_metric_value

__all__ = ["get_metric_value"]
