"""One process of ``hookloop verify-hooks``: train without one of the hooks, and record the bits.

It is not a verb: ``python -m hookloop.cli.verify_hooks_process TASK``, with the task as JSON.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from hookloop import dialects
from hookloop.cli.verify_resume_process import make_trainer
from hookloop.engine.hook import Hook, Priority, kind_of
from hookloop.runs.policy import is_of_machine, machine_names

if TYPE_CHECKING:
    from hookloop.engine.run import Run
    from hookloop.trainer.trainer import Trainer


class RecordNumbers(Hook):
    """Records every number of the training and the validation, to the last bit."""

    name = "verify_hooks"
    priority = Priority.LOWEST  # It sees the numbers after every other hook has acted.
    draws_random_numbers = False

    def __init__(self) -> None:
        self.numbers: dict[str, str] = {}

    def after_train_iter(self, run: Run) -> None:
        """Record the loss of the iteration."""
        if run.loss is not None:
            self.numbers[f"iteration {run.progress.iter}, train/loss"] = float(run.loss).hex()

    def after_train_epoch(self, run: Run) -> None:
        """Record the metrics of the epoch."""
        self._record(run, "train/")

    def after_val(self, run: Run) -> None:
        """Record the metrics of the validation."""
        self._record(run, "val/")

    def _record(self, run: Run, prefix: str) -> None:
        machine = machine_names(name for hook in run.hooks for name in hook.writes)
        for name, value in run.metrics.all_latest().items():
            if name.startswith(prefix) and not is_of_machine(name, machine):
                # Hexadecimal shows every bit, also where decimal digits would look the same.
                self.numbers[f"iteration {run.progress.iter}, {name}"] = float(value).hex()


def leave_out(trainer: Trainer, name: str | None) -> None:
    """Remove the hook with a name from a trainer."""
    trainer._planner.hooks = [hook for hook in trainer._planner.hooks if hook.name != name]
    if not any(hook.steps_schedules for hook in trainer._planner.hooks):
        trainer.run.schedules.clear()  # A schedule that no hook steps would be rejected.


def describe(trainer: Trainer) -> list[dict[str, object]]:
    """Return the hooks of a trainer, with what they declare."""
    return [
        {"name": hook.name, "kind": kind_of(hook), "takes_part": hook.takes_part_in_training}
        for hook in trainer._planner.hooks
    ]


def digests(model: torch.nn.Module) -> dict[str, str]:
    """Return a digest of each tensor of a model."""
    return {name: _digest(tensor) for name, tensor in model.state_dict().items()}


def _digest(tensor: torch.Tensor) -> str:
    # As bytes, because NumPy has no bfloat16.
    data = tensor.detach().cpu().contiguous().view(-1).view(torch.uint8)
    return hashlib.sha256(data.numpy().tobytes()).hexdigest()


def main() -> None:
    """Train as the task says, and write the result to its file."""
    task: Mapping[str, object] = json.loads(sys.argv[1])
    if task["aliases"]:
        dialects.alias(*task["aliases"])  # type: ignore[misc]
    trainer = make_trainer(task)
    # Before one is left out, because the result lists them all.
    hooks = describe(trainer)
    leave_out(trainer, task["without"])  # type: ignore[arg-type]
    recorder = RecordNumbers()
    trainer._planner.hooks.append(recorder)
    trainer.train()
    result = {
        "hooks": hooks,
        "iters": trainer.run.progress.iter,
        "weights": digests(trainer.run.model),
        "numbers": recorder.numbers,
    }
    Path(str(task["file"])).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
