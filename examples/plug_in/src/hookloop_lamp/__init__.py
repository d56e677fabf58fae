"""A hook in a package of its own, which a config names without an import."""

from __future__ import annotations

from collections.abc import Mapping

from hookloop import Hook, Run


class Lamp(Hook):
    """Write the color of the run into ``lamp.txt``: green while the metric improves, else yellow.

    Args:
        metric: The metric to look at; lower is better.
    """

    draws_random_numbers = False

    def __init__(self, metric: str = "val/loss") -> None:
        self.metric = metric
        self.best = float("inf")
        self.reads = (metric,)

    def state_dict(self) -> dict[str, object]:
        return {"best": self.best}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        self.best = float(str(state["best"]))

    def after_val_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        color = "green" if metrics[self.metric] < self.best else "yellow"
        self.best = min(self.best, metrics[self.metric])
        (run.dir / "lamp.txt").write_text(f"{color}\n")

    def after_run(self, run: Run) -> None:
        if run.outcome.status == "failed":
            (run.dir / "lamp.txt").write_text("red\n")
