"""Measure what an adapted hook costs more than a native one: ``python bench/adapted_hook.py``."""

from __future__ import annotations

from time import perf_counter

import torch

from hookloop import Hook, Run, Trainer
from hookloop.engine.plan import fire
from hookloop_mmengine.hooks import Hook as MMEngineHook

ITERATIONS = 20_000
LIMIT = 3.0


class Native(Hook):
    """Does nothing after each iteration."""

    def after_train_iter(self, run: Run) -> None:
        """Do nothing."""


class Foreign(MMEngineHook):
    """Does nothing after each iteration, in MMEngine's way."""

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None) -> None:  # type: ignore[no-untyped-def] # noqa: ANN001
        """Do nothing."""


def microseconds(hook: object) -> float:
    """Time one firing of after_train_iter with one hook, the best of several."""
    model = torch.nn.Linear(1, 1)
    trainer = Trainer(
        model,
        train_data=[(torch.ones(1, 1), torch.ones(1, 1))],
        loss=torch.nn.MSELoss(),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        max_epochs=1,
        default_hooks=False,
        hooks=[hook],  # type: ignore[list-item]
        run_dir=None,
    )
    trainer.train()
    run, calls, times = trainer.run, trainer.run._plan.after_train_iter, []
    run.output = {"loss": torch.zeros(())}
    for _ in range(9):
        began = perf_counter()
        for _ in range(ITERATIONS):
            fire(calls, run)
        times.append((perf_counter() - began) / ITERATIONS)
    return min(times) * 1e6


def main() -> None:
    """Print both and the difference."""
    native, foreign = microseconds(Native()), microseconds(Foreign())
    print(f"native hook    {native:6.2f} us per call")
    print(f"adapted hook   {foreign:6.2f} us per call")
    print(f"difference     {foreign - native:6.2f} us (limit {LIMIT:.0f} us)")


if __name__ == "__main__":
    main()
