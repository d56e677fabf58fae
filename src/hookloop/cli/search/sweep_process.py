"""One process of ``hookloop sweep``: train one trial, and record its result.

It is not a verb: ``python -m hookloop.cli.search.sweep_process TASK``, with the task as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from time import sleep
from typing import Any, cast

from hookloop import dialects
from hookloop.cli.search.sweep_space import Folds, Scalar, overrides
from hookloop.cli.search.sweep_study import Study
from hookloop.config.build import arguments
from hookloop.config.load import load
from hookloop.engine.hook import Hook
from hookloop.errors import HookloopError
from hookloop.hooks.ending.report_trial import PRUNED, ReportTrial
from hookloop.outcome import Interrupted, Outcome
from hookloop.runs.layout import RunDir
from hookloop.runs.policy import Rule, is_better
from hookloop.trainer.trainer import Trainer

LOOK_EVERY = 1.0
"""Seconds between two looks whether the sweep itself is still there."""


def train_trial(task: Mapping[str, Any]) -> int:
    """Train a trial from where it was left, and record its result; return the exit code."""
    study = Study(Path(task["folder"]), {}, rule=task["rule"], pruner=task["pruner"])
    folds = Folds(*task["folds"]) if task["folds"] else None
    number = int(task["number"])
    values: list[float] = []
    for fold in range(folds.count) if folds is not None else (None,):
        run_dir = RunDir(Path(task["folder"]) / task["name"])
        if fold is not None:
            run_dir = RunDir(run_dir.path / f"fold_{fold}")
        chosen: dict[str, Scalar] = dict(task["chosen"])
        if folds is not None and fold is not None:
            chosen[folds.key] = fold
        hooks = (
            [] if folds is not None else [ReportTrial(study.optuna_trial(number), task["metric"])]
        )
        outcome = _train(task, run_dir.path, chosen, hooks)
        if outcome.reason == PRUNED:
            study.prune(number)
            return 0
        values.append(_best_of(run_dir, task["metric"], task["rule"]))
        if folds is not None and fold is not None and _is_hopeless(study, number, fold, values):
            study.prune(number)
            return 0
    study.complete(number, values)
    return 0


def _train(
    task: Mapping[str, Any], run_dir: Path, chosen: Mapping[str, Scalar], hooks: Sequence[Hook]
) -> Outcome:
    config = load(task["config"], [*task["overrides"], *overrides(chosen)])
    given = arguments(config, run_dir=run_dir, resume="auto")
    given["hooks"] = [*cast("list[Hook]", given.get("hooks") or []), *hooks]
    return Trainer(**cast("dict[str, Any]", given)).train()


def _is_hopeless(study: Study, number: int, fold: int, values: list[float]) -> bool:
    """Report the mean so far, and return whether the pruner gives the trial up."""
    trial = study.optuna_trial(number)
    trial.report(mean(values), fold)
    return trial.should_prune()


def _best_of(run: RunDir, metric: str, rule: Rule) -> float:
    """Return the best value that a metric had in a run, with what it had before a resume."""
    best: float | None = None
    for record in run.read_metrics():
        value = record.get(metric)
        if isinstance(value, int | float) and is_better(value, best, rule):
            best = float(value)
    if best is None:
        raise HookloopError(f"'{run.path}' has no value of '{metric}' that is a number.")
    return best


def _end_with_parent(parent: int) -> None:
    """End this process in order when the sweep is killed: its trial continues with the next."""
    while os.getppid() == parent:
        sleep(LOOK_EVERY)
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> int:
    """Train the trial that the command line describes."""
    task = json.loads(sys.argv[1])
    threading.Thread(target=_end_with_parent, args=(int(task["parent"]),), daemon=True).start()
    if task["aliases"]:
        dialects.alias(*task["aliases"])
    try:
        return train_trial(task)
    except Interrupted as interruption:
        return interruption.outcome.exit_code


if __name__ == "__main__":
    sys.exit(main())
