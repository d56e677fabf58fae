"""The learning rates of a run, named for logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hookloop.core.run import Run


def learning_rates(run: Run) -> dict[str, float]:
    """Return ``lr`` of the first parameter group; ``lr/<optimizer>`` when there are several."""
    rates = {name: float(one.param_groups[0]["lr"]) for name, one in run.optimizers.items()}
    if len(rates) == 1:
        return {"lr": next(iter(rates.values()))}
    return {f"lr/{name}": rate for name, rate in rates.items()}
