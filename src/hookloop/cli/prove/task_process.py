"""One process of ``verify-resume``, ``kill-test`` or ``verify-hooks``: it trains as a task says.

It is not a verb: ``python -m hookloop.cli.prove.task_process TASK``, with the task as JSON.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from hookloop import dialects
from hookloop.config.build import arguments
from hookloop.config.load import load
from hookloop.short_runs.kill_test import train_under_fire
from hookloop.short_runs.task import TrainingTask, work_on
from hookloop.short_runs.verify_hooks import train_without
from hookloop.short_runs.verify_resume import train_to_be_killed

MODULE = "hookloop.cli.prove.task_process"

WORK = {
    "verify-resume": train_to_be_killed,
    "kill-test": train_under_fire,
    "verify-hooks": train_without,
}


def train(task: TrainingTask) -> object:
    """Train what the config of a task describes; return what was found."""
    if task.aliases:
        dialects.alias(*task.aliases)
    config = load(Path(task.config), list(task.overrides))
    if config.tree.get("seed") is None:
        config.tree["seed"] = 0
    return WORK[task.work](task, partial(arguments, config))


if __name__ == "__main__":
    work_on(MODULE, train)
