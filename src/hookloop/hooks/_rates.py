"""The learning rates of a run, named for logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hookloop.core.run import Run


def learning_rates(run: Run) -> dict[str, float]:
    """Return ``lr`` of the first parameter group; ``lr/<optimizer>`` when there are several.

    What a hook puts under such a name is left to it.
    """
    several = len(run.optimizers) > 1
    return {
        label: float(one.param_groups[0]["lr"])
        for name, one in run.optimizers.items()
        if (label := f"lr/{name}" if several else "lr") not in run.metrics
    }


def is_rate(name: str) -> bool:
    """Return whether a name is that of a learning rate."""
    return name == "lr" or name.startswith("lr/")
