"""What an update of averaged weights costs: ``python bench/average_weights.py``.

200 tensors of 416,000 numbers in all, against a bare ``torch._foreach_lerp_`` on lists that are
kept, and against ``torch.optim.swa_utils.AveragedModel``.
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
        """Return something that can be trained on."""
        first: torch.Tensor = self.parts[0]
        return first.sum() * inputs.mean()


def measure(kinds: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the median time of each in microseconds, measured by turns so that all share noise."""
    times: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(ROUNDS):
        for name, call in kinds.items():
            since = perf_counter()
            call()
            times[name].append((perf_counter() - since) * 1e6)
    return {name: median(spent[ROUNDS // 10 :]) for name, spent in times.items()}


def main() -> None:
    """Measure within a run, where the hook has its weights, and print."""
    model, hook = Large(), AverageWeights(momentum=SHARE, warmup=False)
    averages = [one.detach().clone() for one in model.parameters()]
    weights = [one.detach() for one in model.parameters()]
    average = get_ema_multi_avg_fn(1 - SHARE)  # type: ignore[no-untyped-call]
    torchs = AveragedModel(model, multi_avg_fn=average)
    torchs.update_parameters(model)
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
                "AveragedModel": lambda: torchs.update_parameters(model),
            }
        )
        for name, time in spent.items():
            print(f"{name:<16}{time:8.1f} us  {time / spent['bare lerp']:5.2f}x")

    trainer.train()


if __name__ == "__main__":
    main()
