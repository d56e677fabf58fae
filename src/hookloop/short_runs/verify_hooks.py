"""Find the hooks that change a training: train with all of them, and without each of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch

from hookloop.engine.hook import Hook, Priority, kind_of, reaches_outside
from hookloop.errors import HookloopError
from hookloop.every import count_of
from hookloop.runs.policy import is_of_machine, machine_names
from hookloop.short_runs.short_run import Arguments, short_run
from hookloop.short_runs.task import TrainingTask, run_task

if TYPE_CHECKING:
    from hookloop.engine.run import Run


@dataclass(frozen=True)
class Ending:
    """How a training ended.

    Attributes:
        hooks: The config's hooks: name, class and whether they take part in the training.
        iters: The number of iterations.
        weights: A digest of each tensor of the model.
        numbers: The recorded numbers, by iteration and name.
    """

    hooks: list[dict[str, object]]
    iters: int
    weights: Mapping[str, str]
    numbers: Mapping[str, str]

    def changes(self, other: Ending) -> str:
        """Describe what is different in another training; empty if nothing is different."""
        parts = []
        if other.iters != self.iters:
            parts.append(f"the length: {count_of(other.iters, 'iteration')}, not {self.iters}")
        weights = [
            name for name, digest in self.weights.items() if other.weights.get(name) != digest
        ]
        if weights:
            parts.append(f"the weights: {_first_of(weights)}")
        # A number that only one of the two trainings has is recorded by the hook itself.
        numbers = [
            name for name, value in self.numbers.items() if other.numbers.get(name, value) != value
        ]
        if numbers:
            parts.append(f"the numbers: {_first_of(numbers)}")
        return "; ".join(parts)


@dataclass(frozen=True)
class Judged:
    """What leaving a hook out changes.

    Attributes:
        name: The hook.
        kind: Its class.
        takes_part: Whether it declares that it takes part in the training.
        changes: What is different without it; empty if nothing is.
    """

    name: str
    kind: str
    takes_part: bool
    changes: str


@dataclass
class Comparison:
    """What was found.

    Attributes:
        iters: How many iterations the training has.
        own: What differs between two trainings with all hooks; empty if nothing does.
        hooks: The hooks; empty if the training does not repeat itself.
    """

    iters: int
    own: str = ""
    hooks: list[Judged] = field(default_factory=list)

    @property
    def undeclared(self) -> list[str]:
        """The hooks that change the training and do not say so."""
        return [one.name for one in self.hooks if one.changes and not one.takes_part]


def verify_hooks(module: str, task: TrainingTask, tell: Callable[[str], None]) -> Comparison:
    """Train with all hooks, twice, and without each of them, each time in a new process.

    Args:
        module: What the processes run, see `run_task`.
        task: What is trained; its directory is beside those of the runs.
        tell: Called with what is known on the way.
    """
    whole = _train(module, task, "all", None)
    # Without this, the randomness of the config would be blamed on every hook.
    if own := whole.changes(_train(module, task, "again", None)):
        return Comparison(whole.iters, own)
    tell(f"with all hooks: {count_of(whole.iters, 'iteration')}, twice the same.")
    found = Comparison(whole.iters)
    for number, hook in enumerate(whole.hooks):
        name = str(hook["name"])
        try:
            changes = whole.changes(_train(module, task, f"without_{number}", name))
        # A training that fails without the hook depends on it, which is a result and not an error.
        except HookloopError as error:
            changes = f"everything: {error}"
        found.hooks.append(Judged(name, str(hook["kind"]), bool(hook["takes_part"]), changes))
    return found


def _train(module: str, task: TrainingTask, folder: str, without: str | None) -> Ending:
    run_dir = str(Path(task.run_dir).parent / folder)
    ended = run_task(module, replace(task, run_dir=run_dir, options={"without": without}))
    if ended.code or ended.result is None:
        lines = ended.output.splitlines()
        if without is not None:
            raise HookloopError(f"the training fails without it ({lines[-1] if lines else ''})")
        raise ended.failure
    return Ending(**cast("dict[str, Any]", ended.result))


def _first_of(names: Sequence[str]) -> str:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{names[0]}{more}"


# --- in the process that trains -------------------------------------------------------------------


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


def train_without(task: TrainingTask, make: Callable[..., Arguments]) -> dict[str, object]:
    """Train as the task says; return an `Ending`.

    Args:
        task: The task.
        make: Returns the arguments of a Trainer, given ``run_dir`` and ``resume``.
    """
    hooks: list[dict[str, object]] = []
    recorder = RecordNumbers()

    def leave_out(hook: Hook) -> str | None:
        if (reason := reaches_outside(hook)) is not None:
            return reason
        # Also the one that is left out, because the result lists them all.
        takes_part = hook.takes_part_in_training
        hooks.append({"name": hook.name, "kind": kind_of(hook), "takes_part": takes_part})
        return "it is compared" if hook.name == task.options["without"] else None

    short = short_run(
        lambda run_dir: make(run_dir=run_dir, resume=False),
        iters=task.iters,
        hooks=[recorder],
        leave_out=leave_out,
        run_dir=Path(task.run_dir),
        may_end_early=True,
    )
    weights = cast("Mapping[str, torch.Tensor]", short.state["model"])
    digests = {name: _digest(tensor) for name, tensor in weights.items()}
    return asdict(Ending(hooks, short.iters, digests, recorder.numbers))


def _digest(tensor: torch.Tensor) -> str:
    # As bytes, because NumPy has no bfloat16.
    data = tensor.detach().cpu().contiguous().view(-1).view(torch.uint8)
    return hashlib.sha256(data.numpy().tobytes()).hexdigest()
