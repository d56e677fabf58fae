"""Measure what an update of averaged weights costs: ``python bench/average_weights.py``.

There are 200 tensors with 416,000 numbers in total. The hook is compared with a bare
``torch._foreach_lerp_`` on lists made once, and with ``torch.optim.swa_utils.AveragedModel``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from hookloop import Run, Trainer
from hookloop.hooks import AverageWeights

ROUNDS = 2000
SHARE = 0.01


class Large(nn.Module):
    """A model of 200 tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ParameterList([nn.Parameter(torch.randn(2080)) for _ in range(200)])

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return a loss."""
        first: torch.Tensor = self.parts[0]
        return first.sum() * inputs.mean()


def measure(kinds: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the median time of each in microseconds."""
    # In turns, so that all have the same noise.
    times: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(ROUNDS):
        for name, call in kinds.items():
            since = perf_counter()
            call()
            times[name].append((perf_counter() - since) * 1e6)
    # The first tenth warms up caches and allocators.
    return {name: median(spent[ROUNDS // 10 :]) for name, spent in times.items()}


def main() -> None:
    """Measure within a run, where the hook has its weights, and print."""
    model, hook = Large(), AverageWeights(momentum=SHARE, warmup=False)
    averages = [parameter.detach().clone() for parameter in model.parameters()]
    weights = [parameter.detach() for parameter in model.parameters()]
    average = get_ema_multi_avg_fn(1 - SHARE)  # type: ignore[no-untyped-call]
    averaged_model = AveragedModel(model, multi_avg_fn=average)
    averaged_model.update_parameters(model)  # The first update only copies.
    trainer = Trainer(
        model,
        train_data=[torch.ones(1)],
        optimizer=torch.optim.SGD(model.parameters(), lr=0.0),
        max_epochs=1,
        default_hooks=False,
        hooks=[hook],
        run_dir=Path(tempfile.mkdtemp()) / "run",
    )

    @trainer.on("after_train")
    def compare(run: Run) -> None:
        spent = measure(
            {
                "bare lerp": lambda: torch._foreach_lerp_(averages, weights, SHARE),
                "AverageWeights": lambda: hook.after_train_iter(run),
                "AveragedModel": lambda: averaged_model.update_parameters(model),
            }
        )
        for name, time in spent.items():
            print(f"{name:<16}{time:8.1f} us  {time / spent['bare lerp']:5.2f}x")

    trainer.train()


if __name__ == "__main__":
    main()
