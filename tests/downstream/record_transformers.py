"""Record what the real Transformers does, for the tests of our dialect.

    python -m tests.downstream.record_transformers     in the environment of `make downstream`

It imports nothing of hookloop; what it writes is committed, so that the tests need no Transformers.
"""

from __future__ import annotations

import json
import tempfile
import types
import warnings
from pathlib import Path

import torch
import transformers
from tests.downstream.transformers_scenarios import SCENARIOS, Model, Samples, numbers, rate

RECORD = Path(__file__).parent / "recorded" / "transformers.json"
NAMES = types.SimpleNamespace(
    TrainerCallback=transformers.TrainerCallback,
    TrainerControl=transformers.TrainerControl,
    EarlyStoppingCallback=transformers.EarlyStoppingCallback,
)


class InOrder(transformers.Trainer):
    """Reads the samples in their order, as our DataLoader does."""

    def _get_train_sampler(self, *args):
        return torch.utils.data.SequentialSampler(self.train_dataset)


def record(scenario):
    """Make the training of a scenario with the real Trainer."""
    seen = []
    limits = {"max_steps": scenario.steps} if scenario.steps else {}
    every = {"eval_strategy": "epoch"}
    if scenario.val_every:
        every = {"eval_strategy": "steps", "eval_steps": scenario.val_every}
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with tempfile.TemporaryDirectory() as folder:
        args = transformers.TrainingArguments(
            output_dir=folder,
            num_train_epochs=scenario.epochs,
            per_device_train_batch_size=4,
            per_device_eval_batch_size=4,
            gradient_accumulation_steps=scenario.accumulate,
            max_grad_norm=0,
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
            **every,
            **limits,
            **scenario.args,
        )
        trainer = InOrder(
            model=model,
            args=args,
            train_dataset=Samples(12),
            eval_dataset=Samples(8),
            callbacks=scenario.callbacks(NAMES, seen),
            optimizers=(optimizer, rate(optimizer)),
        )
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train()
    return {"seen": seen, "weights": numbers(model), "steps": trainer.state.global_step}


def main() -> None:
    """Write the record."""
    warnings.simplefilter("ignore")
    recorded = {name: record(scenario) for name, scenario in SCENARIOS.items()}
    lines = [f"{json.dumps(name)}: {json.dumps(one)}" for name, one in recorded.items()]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
