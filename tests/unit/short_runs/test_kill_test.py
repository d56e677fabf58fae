"""Signals to random ranks leave the bits of an undisturbed training."""

from pathlib import Path

import pytest

from hookloop.cli.prove.task_process import MODULE
from hookloop.short_runs.kill_test import KillTest
from hookloop.short_runs.task import TrainingTask

SLOW = """
import time
from hookloop import Hook
class Wait(Hook):
    def after_train_iter(self, run):
        time.sleep(0.1)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("ranks", "logical"), [(1, 0), (2, 4)])
def test_a_training_under_fire_ends_with_the_same_bits(
    project: Path, ranks: int, logical: int
) -> None:
    (project / "waiting.py").write_text(SLOW)
    config = str(project / "config.yaml")
    changes = [
        "max_epochs=100",
        "hooks={wait: waiting.Wait}",
        *[f"parallel.logical={logical}"] * bool(logical),
    ]
    task = TrainingTask("kill-test", config, changes, (), str(project / "run"), 12, ranks)
    said: list[str] = []
    test = KillTest(
        MODULE, task, mean_time=0.3, seed=1, has_logical=bool(logical), tell=said.append
    )
    survived = test.run(2)
    assert not survived.differences
    assert len(survived.faults) == 2
    assert sum("to rank" in line for line in said) == 2
