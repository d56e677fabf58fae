"""Results that MMEngine's hooks add, for native hooks and writers.

In MMEngine all hooks get one dict of metrics, and its logger writes what is in the message hub.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from hookloop.dialects import (
    Adapter,
    matches,
    plan_of,
)

if TYPE_CHECKING:
    from hookloop import Run
    from hookloop_mmengine.facade import RunnerFacade

_MISSING = object()
_OTHERS = ("time", "data_time", "memory")
"""What MMEngine's own hooks put into the hub; a native run has metrics of its own for it."""


def share_metrics(
    facade: RunnerFacade, before: Mapping[str, object], after: Mapping[str, object]
) -> None:
    """Pass on what a hook has added to the metrics of an evaluation, or replaced there.

    Args:
        facade: The runner that the hook got.
        before: The metrics as they were given to the hook.
        after: The same afterwards.
    """
    run = facade.run
    added = {
        name: value for name, value in after.items() if before.get(name, _MISSING) is not value
    }
    if added and facade.raw_metrics is not None:
        facade.raw_metrics = {**facade.raw_metrics, **added}
    for name, value in added.items():
        if isinstance(value, int | float | np.number) or _is_scalar(value):
            run.metrics.replace(f"{run.phase}/{name}", float(value))  # type: ignore[arg-type]


def _is_scalar(value: object) -> bool:
    return isinstance(value, Tensor) and value.numel() == 1


def without_phase(metrics: Mapping[str, float], phase: str) -> dict[str, float]:
    """Return metrics by their names within a phase, as MMEngine's evaluator has them.

    >>> without_phase({"val/loss": 0.5}, "val")
    {'loss': 0.5}
    """
    return {name.removeprefix(f"{phase}/"): value for name, value in metrics.items()}


class HubRecorder:
    """Puts the numbers that hooks and models add to the message hub into the metric store.

    Args:
        run: A native run; MMEngine's `Runner` records its hub itself.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._declared: dict[str, bool] = {}  # By name: looked up in every iteration.

    def __call__(self, key: str, value: float | Tensor) -> None:
        """Record a number, unless the run has it as a metric of its own."""
        phase, _, name = key.partition("/")
        if phase not in ("train", "val", "test") or name in ("", *_OTHERS):
            return
        if not name.endswith(("lr", "momentum")) and not self._is_native(key, phase, name):
            self._run.metrics.put(key, value)

    def _is_native(self, key: str, phase: str, name: str) -> bool:
        run = self._run
        if phase != "train":  # Then its results have been published just now.
            return run.metrics.series(key).is_current
        if isinstance(run.output, Mapping) and name in run.output:
            return True
        if key not in self._declared:
            native = [hook for hook in run.hooks if not isinstance(hook, Adapter)]
            written = [*plan_of(run).produced, *(one for hook in native for one in hook.writes)]
            # A pattern of the engine stands for what a step returns, which is in the output.
            self._declared[key] = any(matches(key, one) for one in written if one != "train/*")
        return self._declared[key]
