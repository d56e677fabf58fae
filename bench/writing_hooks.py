"""Measure what a hook that writes every 50 iterations costs the training.

Each hook is called many times inside a real run, when it is due and when it is not. The time is
that of the training's own thread, because another thread does the writing.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import thread_time_ns

import torch

from hookloop import Hook, Trainer
from hookloop.hooks import LogMetrics, RecordTimes, ShowProgress, WriteCSV, WriteMetrics

EVERY = 50
BUDGET = 3.0  # Microseconds per iteration.


class Probe(Hook):
    """Calls another hook many times, near the end of a run."""

    priority = 100

    def __init__(self, hook: Hook) -> None:
        self.hook = hook
        self.idle = self.due = 0.0

    def after_train_iter(self, run: object) -> None:
        """Measure, in an iteration in which the hook is not due."""
        from hookloop.engine.run import Run

        assert isinstance(run, Run)
        if run.progress.iter != 149:
            return
        calls = run._plan.after_train_iter
        (planned,) = (call for call, hook in calls.entries if hook is self.hook)
        losses = run.metrics.series("train/loss")

        def renew() -> None:  # Values are read only once, so each call needs new ones.
            for _ in range(EVERY):
                losses.add(torch.rand(()))

        self.idle = fastest(lambda: planned(run), 2000, repeat=40)
        self.due = fastest(lambda: self.hook.after_train_iter(run), 1, repeat=400, before=renew)


def fastest(
    action: Callable[[], None],
    count: int,
    *,
    repeat: int,
    before: Callable[[], None] = lambda: None,
) -> float:
    """Return the microseconds of one call in the fastest of several series."""
    best = float("inf")
    for _ in range(repeat):
        before()
        began = thread_time_ns()
        for _ in range(count):
            action()
        best = min(best, (thread_time_ns() - began) / count / 1000)
    return best


def measure(hook: Hook, directory: Path) -> Probe:
    """Train a model of one weight for 150 iterations, and probe the hook."""
    model = torch.nn.Linear(1, 1)
    probe = Probe(hook)
    Trainer(
        model,
        train_data=[torch.ones(4, 1)] * 150,
        step=lambda run, batch: model(batch).mean(),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.0),
        max_epochs=1,
        default_hooks=False,
        hooks=[RecordTimes(), hook, probe],
        run_dir=directory / hook.name,
    ).train()
    return probe


def main() -> None:
    """Print a line per hook."""
    torch.set_num_threads(1)
    hooks: list[Hook] = [
        WriteMetrics(every=EVERY),
        WriteCSV(every=EVERY),
        LogMetrics(every=EVERY, console=False),
        ShowProgress(every=EVERY, file=io.StringIO()),
    ]
    print(f"{'hook':<16}{'not due':>10}{'due':>10}{f'per iteration at every={EVERY}':>36}")
    with tempfile.TemporaryDirectory() as directory:
        for hook in hooks:
            probe = measure(hook, Path(directory))
            cost = probe.idle + probe.due / EVERY
            verdict = "within" if cost < BUDGET else "OVER"
            print(
                f"{type(hook).__name__:<16}{probe.idle:>7.2f} us{probe.due:>7.1f} us"
                f"{cost:>22.2f} us, {verdict} {BUDGET:g}"
            )


if __name__ == "__main__":
    main()
