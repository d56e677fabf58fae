"""One process of ``hookloop verify-resume``: trains, and kills itself where it is told to.

It is no verb: ``python -m hookloop.cli.verify_life ORDER``, with the order as JSON.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, cast

from hookloop import dialects
from hookloop.checkpoint.store import LAST
from hookloop.config.build import arguments
from hookloop.config.load import load
from hookloop.core.hook import Hook
from hookloop.hooks._writing import Writing
from hookloop.hooks.save_checkpoint import SaveCheckpoint
from hookloop.hooks.write_metrics import WriteMetrics
from hookloop.trainer.trainer import Trainer

if TYPE_CHECKING:
    from hookloop.core.run import Run

PATIENCE = 30.0


class Die(Hook):
    """Kills its own process, as nothing inside of it could expect.

    Args:
        iteration: After how many iterations.
        moment: The mount point; or ``"while saving"``, a few milliseconds after a save has begun.
    """

    draws_random_numbers = False

    def __init__(self, iteration: int, moment: str) -> None:
        self.iteration = iteration
        self.moment = moment
        self._last: str | None = None
        self._saves = 0

    def before_train(self, run: Run) -> None:
        """See what there is to resume from."""
        self._last = _read(run.dir / LAST)

    def before_train_iter(self, run: Run) -> None:
        """Die here, if it is time."""
        self._reach(run, "before_train_iter")

    def after_forward(self, run: Run) -> None:
        """Die here, if it is time."""
        self._reach(run, "after_forward")

    def after_backward(self, run: Run) -> None:
        """Die here, if it is time."""
        self._reach(run, "after_backward")

    def after_update(self, run: Run) -> None:
        """Die here, if it is time."""
        self._reach(run, "after_update")

    def before_save_checkpoint(self, run: Run, checkpoint: MutableMapping[str, object]) -> None:
        """Leave no trace in the checkpoint, which may be the last; die a little later, if due."""
        cast("dict[str, object]", checkpoint["hooks"]).pop(self.name, None)
        self._saves += 1
        if self.moment == "while saving" and run.progress.iter >= self.iteration:
            # Of its own: the numbers of the training must be those of one that nobody kills.
            threading.Timer(random.Random().uniform(0.0, 0.02), _die).start()

    def _reach(self, run: Run, moment: str) -> None:
        if self.moment != moment or run.progress.iter < self.iteration:
            return
        # A small model is faster than the disk: without a checkpoint, nothing would be proved.
        until = monotonic() + PATIENCE
        while self._saves and _read(run.dir / LAST) == self._last and monotonic() < until:
            sleep(0.002)
        _die()


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _die() -> None:
    # Windows has no SIGKILL; there, SIGTERM ends a process as suddenly.
    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))


def make_trainer(order: Mapping[str, object]) -> Trainer:
    """Build the config's trainer, shortened, with frequent saves and without outside services."""
    config = load(Path(str(order["config"])), cast("list[str]", order["overrides"]))
    tree, iters = config.tree, cast("int", order["iters"])
    limit = tree.get("max_iters")
    tree["max_iters"] = min(limit, iters) if isinstance(limit, int) else iters
    if tree.get("seed") is None:
        tree["seed"] = 0
    given = arguments(config, run_dir=str(order["run_dir"]), resume="auto")
    hooks = [hook for hook in cast("list[Hook]", given["hooks"]) if not _is_service(hook)]
    save = SaveCheckpoint(cast("int", order["every"]), keep=2)
    defaults = given["default_hooks"]
    if defaults is False:
        hooks.append(save.named("verify_resume"))
    else:
        changed = cast("dict[str, Hook | None]", defaults or {})
        kept = {name: hook for name, hook in changed.items() if not _is_service(hook)}
        given["default_hooks"] = {**kept, "checkpoint": save, "console": None}
    if kill := cast("dict[str, object] | None", order["kill"]):
        hooks.append(Die(cast("int", kill["iter"]), str(kill["moment"])))
    given["hooks"] = hooks
    return Trainer(**given)  # type: ignore[arg-type]


def _is_service(hook: object) -> bool:
    return isinstance(hook, Writing) and not isinstance(hook, WriteMetrics)


def main() -> None:
    """Obey the order; leave a note of what may make a resume inexact."""
    order = json.loads(sys.argv[1])
    if order["aliases"]:
        dialects.alias(*order["aliases"])
    trainer = make_trainer(order)
    data = trainer.run.train_data
    notes = [f"{data.name}: {data.inexact}."] if data is not None and data.inexact else []
    Path(order["run_dir"]).with_suffix(".json").write_text(json.dumps(notes), encoding="utf-8")
    trainer.train()


if __name__ == "__main__":
    main()
