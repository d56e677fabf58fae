"""What `RecordFingerprints` costs: one record, beside one iteration, and at `every=50`.

python -m bench.fingerprints
"""

from __future__ import annotations

import tempfile
from statistics import median
from time import perf_counter

import torch
from torch import nn

from hookloop import Hook, Trainer
from hookloop.hooks import RecordFingerprints

EVERY = 50
GOAL = 0.005
ITERS = 30


class _Time(Hook):
    """Measures an iteration without its last hook, and that hook."""

    takes_part_in_training = True

    def __init__(self) -> None:
        self.begun = 0.0
        self.steps: list[float] = []

    def before_train_iter(self, run: object) -> None:
        self.begun = perf_counter()

    def after_train_iter(self, run: object) -> None:
        self.steps.append(perf_counter() - self.begun)


class _Timed(RecordFingerprints):
    """Measures what it does itself."""

    def __init__(self) -> None:
        super().__init__(every=1)
        self.name = "record_fingerprints"
        self.spent = 0.0
        self.records: list[float] = []

    def before_update(self, run: object) -> None:
        begun = perf_counter()
        super().before_update(run)  # type: ignore[arg-type]
        self.spent = perf_counter() - begun

    def after_train_iter(self, run: object) -> None:
        begun = perf_counter()
        super().after_train_iter(run)  # type: ignore[arg-type]
        self.records.append(self.spent + perf_counter() - begun)


def measure(width: int, depth: int, batch: int) -> tuple[int, float, float]:
    """Return the parameters, and the median seconds of an iteration and of a record."""
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(depth)]
    model = nn.Sequential(*layers, nn.Linear(width, 10))
    data = [(torch.randn(batch, width), torch.randint(10, (batch,))) for _ in range(4)]
    time, record = _Time(), _Timed()
    with tempfile.TemporaryDirectory() as folder:
        Trainer(
            model,
            train_data=data,
            loss=nn.functional.cross_entropy,
            optimizer=torch.optim.AdamW(model.parameters()),
            max_iters=ITERS,
            default_hooks=False,
            hooks=[time, record],
            run_dir=f"{folder}/run",
        ).train()
    step, own = median(time.steps), median(record.records)
    return sum(one.numel() for one in model.parameters()), step - record.spent, own


def main() -> None:
    """Print a line for each model."""
    torch.set_num_threads(1)
    for width, depth in ((512, 4), (1600, 10)):
        count, step, record = measure(width, depth, 32)
        share = record / (EVERY * step)
        verdict = "within" if share <= GOAL else "above"
        print(
            f"{count / 1e6:.1f} M parameters: an iteration {step * 1e3:.1f} ms, a record "
            f"{record * 1e3:.2f} ms, {share:.2%} at every={EVERY}: {verdict} {GOAL:.1%}"
        )


if __name__ == "__main__":
    main()
