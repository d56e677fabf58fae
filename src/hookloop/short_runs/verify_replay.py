"""Train a config for a while, and repeat some of its iterations in other processes."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hookloop.engine.hook import Hook, Priority
from hookloop.errors import HookloopError
from hookloop.hooks.guarding.plant_fault import Fault, PlantFault
from hookloop.hooks.measuring.record_fingerprints import RecordFingerprints
from hookloop.hooks.saving.save_checkpoint import SaveCheckpoint
from hookloop.short_runs.edits import edit_run
from hookloop.short_runs.short_run import short_run

if TYPE_CHECKING:
    from hookloop.engine.run import Run

STRETCHES = 4
"""Into how many parts checkpoints divide the training."""

_FINGERPRINTS = "{type: RecordFingerprints, every: 1, optimizers: true}"


@dataclass(frozen=True)
class Repeated:
    """What the replay of one iteration has shown.

    Attributes:
        iter: The iteration.
        begun: Where the replay began.
        result: ``"equal"``, ``"different"`` or ``"refused"``.
        difference: The first difference, or why it was refused.
        at: The iteration of the first difference.
    """

    iter: int
    begun: str
    result: str
    difference: str = ""
    at: int | None = None


def train_for_replay(
    make: Callable[[Path], Mapping[str, object]], run_dir: Path, iters: int, fault: Fault | None
) -> int:
    """Train the first iterations, with a fingerprint of each; return how many there were."""
    hooks: list[Hook] = [_StopAfter(iters)]
    if fault is not None and fault.kind != "edit":
        hooks.append(PlantFault(str(fault)))

    def arguments(directory: Path) -> Mapping[str, object]:
        given = dict(make(directory))
        kept = given.get("default_hooks")
        if kept is not False:
            save = SaveCheckpoint(every=f"{max(1, iters // STRETCHES)} iters", keep=None)
            others = kept if isinstance(kept, Mapping) else {}
            given["default_hooks"] = {**others, "checkpoint": save}
        return given

    record = RecordFingerprints(every=1, optimizers=True)
    try:
        short = short_run(arguments, iters=None, hooks=[record, *hooks], run_dir=run_dir)
    except FloatingPointError as error:
        if fault is None:
            raise
        raise HookloopError(
            f"{fault} was planted, and the training itself has found it: {error} Leave out the "
            "hook that did: default_hooks.nan=null."
        ) from error
    if fault is not None and fault.kind == "edit":
        edit_run(run_dir, fault.target)
    return short.iters


def repeat(
    run_dir: Path, iters: int, count: int, seed: int, fault: Fault | None, flags: Sequence[str] = ()
) -> list[Repeated]:
    """Replay random iterations, each in a process of its own; that of a planted fault is one."""
    chosen = random.Random(seed).sample(range(1, iters + 1), min(count, iters))
    if fault is not None:
        # From the checkpoint before: a later one has what the fault did.
        chosen[0] = min(max(1, fault.iter), iters)
    found = []
    for number in dict.fromkeys(chosen):
        span = str(number)
        if fault is not None:  # To the next checkpoint, which has the states of hooks as well.
            each = max(1, iters // STRETCHES)
            last = iters if fault.kind == "edit" else min(iters, -(-number // each) * each)
            span = f"{1 if fault.kind == 'edit' else number}:{last}"
        command = [
            sys.executable, "-m", "hookloop", "replay", str(run_dir), "--iter", span,
            "--hook", _FINGERPRINTS, "--check", "--json", *flags,
        ]  # fmt: skip
        ended = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
        found.append(_read(number, ended))
        if fault is not None and fault.kind == "edit":
            break
    return found


def _read(number: int, ended: subprocess.CompletedProcess[str]) -> Repeated:
    try:
        told = json.loads(ended.stdout)
    except ValueError as error:
        raise HookloopError(
            f"The replay of iteration {number} ended with {ended.returncode}: {ended.stderr[-500:]}"
        ) from error
    begun = str(told.get("from") or "")
    if ended.returncode == 1 and (different := told.get("difference")):
        return Repeated(number, begun, "different", different["what"], different["iter"])
    if ended.returncode:
        why = told.get("error") or "there was nothing to compare with"
        return Repeated(number, begun, "refused", str(why))
    return Repeated(number, begun, "equal")


class _StopAfter(Hook):
    """Ends the training without a limit, on which schedules depend."""

    name = "stop_to_verify"
    priority = Priority.LOWEST
    draws_random_numbers = False

    def __init__(self, iters: int) -> None:
        self._iters = iters

    def after_train_iter(self, run: Run) -> None:
        if run.progress.iter >= self._iters:
            run.stop("there are enough iterations to repeat", everywhere=True)


def scratch_run() -> tempfile.TemporaryDirectory[str]:
    """Return a directory that goes away, for the run."""
    return tempfile.TemporaryDirectory(prefix="hookloop-verify-replay-")
