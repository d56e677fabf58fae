"""The processes of a sweep: several at a time, one that fails, a signal."""

import json
import os
import signal
import threading
from pathlib import Path

import pytest

from hookloop.cli.search.sweep_jobs import Jobs
from hookloop.cli.search.sweep_space import split
from hookloop.cli.search.sweep_study import Study, Trial

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),
]


def make_jobs(project: Path, ended: list[Trial], most: int = 2, **changes: object) -> Jobs:
    (project / "sweep").mkdir(exist_ok=True)
    study = Study(project / "sweep", split(["optimizer.lr=[0.01,0.1]"])[0], rule="less", seed=0)
    task = {
        "folder": str(project / "sweep"), "config": "config.yaml", "overrides": [], "aliases": [],
        "metric": "val/loss", "rule": "less", "pruner": "none", "folds": None, **changes,
    }  # fmt: skip
    return Jobs(study, task, most, ended.append)


def test_trials_that_fail_are_recorded_with_the_reason(project: Path) -> None:
    ended: list[Trial] = []
    make_jobs(project, ended, overrides=["loss=nothing_like_that"]).run(2)
    assert [one.state for one in ended] == ["fail", "fail"]
    assert "nothing_like_that" in str(ended[0].problem)


def test_the_reason_is_the_exception_and_not_its_note(project: Path) -> None:
    (project / "unlucky.py").write_text("def loss(output, target):\n    raise OSError('unlucky')\n")
    ended: list[Trial] = []
    make_jobs(project, ended, overrides=["loss=unlucky.loss"]).run(1)
    assert ended[0].problem == "exit code 1: OSError: unlucky"


def test_a_signal_ends_the_trials_in_order_and_the_next_sweep_continues_them(
    project: Path,
) -> None:
    (project / "slow_hook.py").write_text(
        "import time\nfrom hookloop import Hook\n"
        "class Slow(Hook):\n"
        "    def after_train_iter(self, run):\n"
        "        time.sleep(0.05)\n"
        "        if run.progress.epoch:\n"
        "            open('begun', 'w').close()\n"
    )
    long = ["max_epochs=1000", "hooks={slow: slow_hook.Slow}"]
    ended: list[Trial] = []
    jobs = make_jobs(project, ended, most=1, overrides=long)
    main = os.getpid()

    def interrupt() -> None:
        while not (project / "begun").exists():
            threading.Event().wait(0.05)
        os.kill(main, signal.SIGTERM)

    threading.Thread(target=interrupt).start()
    jobs.run(1)
    assert jobs.signal == signal.SIGTERM
    assert ended == []
    assert [one.state for one in jobs.study.trials()] == ["running"]
    reached = (project / "sweep/trial_0000/last_checkpoint").read_text().strip()
    done = int(reached.removeprefix("iter_").removesuffix(".pth"))
    shorter = ["max_epochs=1000", f"max_iters={done + 4}"]
    make_jobs(project, ended, overrides=shorter).run(1)
    assert [one.state for one in ended] == ["complete"]
    iters = [json.loads(line)["iter"] for line in metrics_of(project) if '"val/loss"' in line]
    assert iters == sorted(set(iters))
    assert iters[0] < done < iters[-1] == done + 4


def metrics_of(project: Path) -> list[str]:
    return (project / "sweep/trial_0000/metrics.jsonl").read_text().splitlines()
