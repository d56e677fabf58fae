"""One process of ``hookloop verify-hooks``: trains without one of the hooks, and notes the bits.

It is no verb: ``python -m hookloop.cli.verify_hooks_life ORDER``, with the order as JSON.
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
from hookloop.checkpoint.compare import is_measurement
from hookloop.cli.verify_life import make_trainer
from hookloop.core.hook import Hook, Priority, kind_of

if TYPE_CHECKING:
    from hookloop.core.run import Run
    from hookloop.trainer.trainer import Trainer


class Note(Hook):
    """Notes every number of the training and the validation, to the last bit."""

    name = "verify_hooks"
    priority = Priority.LOWEST
    draws_random_numbers = False

    def __init__(self) -> None:
        self.numbers: dict[str, str] = {}

    def after_train_iter(self, run: Run) -> None:
        """Note the loss of the iteration."""
        if run.loss is not None:
            self.numbers[f"iteration {run.progress.iter}, train/loss"] = float(run.loss).hex()

    def after_train_epoch(self, run: Run) -> None:
        """Note what is recorded of the epoch."""
        self._note(run, "train/")

    def after_val(self, run: Run) -> None:
        """Note what the validation found."""
        self._note(run, "val/")

    def _note(self, run: Run, prefix: str) -> None:
        for name, value in run.metrics.all_latest().items():
            if name.startswith(prefix) and not is_measurement(name):
                self.numbers[f"iteration {run.progress.iter}, {name}"] = float(value).hex()


def leave_out(trainer: Trainer, name: str | None) -> None:
    """Take a hook out, by its name."""
    trainer._hooks = [hook for hook in trainer._hooks if hook.name != name]
    if not any(hook.steps_schedules for hook in trainer._hooks):
        trainer.run.schedules.clear()  # A schedule that nobody steps would be rejected.


def describe(trainer: Trainer) -> list[dict[str, object]]:
    """List the hooks of a trainer, with what they declare."""
    return [
        {"name": hook.name, "kind": kind_of(hook), "takes_part": hook.takes_part_in_training}
        for hook in trainer._hooks
    ]


def digests(model: torch.nn.Module) -> dict[str, str]:
    """Condense each tensor of a model."""
    return {name: _digest(one) for name, one in model.state_dict().items()}


def _digest(tensor: torch.Tensor) -> str:
    words = tensor.detach().cpu().contiguous().view(-1).view(torch.uint8)
    return hashlib.sha256(words.numpy().tobytes()).hexdigest()


def main() -> None:
    """Obey the order."""
    order: Mapping[str, object] = json.loads(sys.argv[1])
    if order["aliases"]:
        dialects.alias(*order["aliases"])  # type: ignore[misc]
    trainer = make_trainer(order)
    hooks = describe(trainer)
    leave_out(trainer, order["without"])  # type: ignore[arg-type]
    note = Note()
    trainer._hooks.append(note)
    trainer.train()
    found = {
        "hooks": hooks,
        "iters": trainer.run.progress.iter,
        "weights": digests(trainer.run.model),
        "numbers": note.numbers,
    }
    Path(str(order["file"])).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
