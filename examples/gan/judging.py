"""What the losses of a GAN do not show: where its points are."""

from __future__ import annotations

import torch

from hookloop import Hook, Run

from gan import Gan
from ring import judge


class JudgePoints(Hook):
    """Measure generated points at an interval and at the end, and draw them into ``points.txt``.

    Args:
        count: How many points to generate.
        every: The interval.
    """

    writes = ("points/near", "points/modes")

    def __init__(self, count: int = 2000, every: int | str = "250 iters") -> None:
        self.count = count
        self.every = every

    def after_train_iter(self, run: Run) -> None:
        self.measure(run)

    def after_train(self, run: Run) -> None:
        self.measure(run)

    def measure(self, run: Run) -> None:
        """Generate points, put their scores into the metric store, and draw them."""
        assert isinstance(run.model, Gan)
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)  # The same noise each time; the training's stays as it is.
            points = run.model.generate(self.count)
        for name, value in judge(points).items():
            run.metrics.put(f"points/{name}", value)
        if run.world.is_main:  # On many ranks, all of them have generated the same points.
            (run.dir / "points.txt").write_text(draw(points), encoding="utf-8")


def draw(points: torch.Tensor, *, rows: int = 25, columns: int = 50, reach: float = 2.6) -> str:
    """Draw points as characters; the more points, the darker.

    >>> print(draw(torch.tensor([[-2.0, 0.0], [2.0, 0.0]]), rows=1, columns=6, reach=3.0))
    @    @
    """
    size = torch.tensor([columns, rows])
    cells = ((points.cpu() / reach + 1) / 2 * size).long().clamp(min=0).minimum(size - 1)
    counts = torch.zeros(rows, columns)
    indices = (rows - 1 - cells[:, 1], cells[:, 0])  # The first row of text is the top.
    counts.index_put_(indices, torch.ones(len(points)), accumulate=True)
    shades = " .:*@"
    levels = (counts / counts.max() * (len(shades) - 1)).ceil().long()
    return "\n".join("".join(shades[level] for level in row).rstrip() for row in levels.tolist())
