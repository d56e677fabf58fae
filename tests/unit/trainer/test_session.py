"""What a run reports, where, and what is left of it when it has ended."""

import json
import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
import warnings
from pathlib import Path

import pytest
import torch
from tests import warm
from tests.names import iter_file
from tests.tiny import Record, make_classifier, make_data, make_trainer

from hookloop import Hook, Interrupted
from hookloop.errors import CheckpointError
from hookloop.hooks import LogMetrics, WriteMetrics, WriteTo
from hookloop.runs.lock import LOCK
from hookloop.writers.base import Writer


class FailsInTraining(Hook):
    on_error = "disable"

    def after_train_iter(self, run):
        raise ValueError("no sensor")


class FailsAtTheEnd(Hook):
    on_error = "disable"
    priority = 99

    def after_run(self, run):
        raise ValueError("no service")


class Broken(Writer):
    name = "broken"

    def write(self, records):
        raise OSError("no network")


def read(directory):
    return (directory / "run.log").read_text(encoding="utf-8")


def summary(directory):
    return json.loads((directory / "summary.json").read_text(encoding="utf-8"))


@pytest.fixture
def no_logging(monkeypatch):
    """A program that has not set up logging."""
    monkeypatch.setattr(logging.root, "handlers", [])


def test_every_run_keeps_a_log(tmp_path, no_logging, capsys):
    make_classifier(hooks=[Hook()], run_dir=tmp_path).train()
    assert "completed after iteration 3" in read(tmp_path)
    assert capsys.readouterr() == ("", "")


def test_a_run_without_hooks_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_trainer().train()
    assert list(tmp_path.iterdir()) == []


def test_a_hook_that_was_left_out_is_in_the_outcome_the_summary_the_log_and_on_the_error_output(
    tmp_path, no_logging, capsys
):
    hooks = {
        "train": FailsInTraining(),
        "end": FailsAtTheEnd(),
        "write": WriteTo(Broken(), every=1),
        "metrics": WriteMetrics(),
        "log": LogMetrics(every=1),
    }
    outcome = make_classifier(hooks=hooks, run_dir=tmp_path, setup={"config": {"a": 1}}).train()
    failed = {one.hook: (one.point, one.error) for one in outcome.disabled}
    assert failed == {
        "train": ("after_train_iter", "ValueError: no sensor"),
        "write": ("writing (broken)", "OSError: no network"),
        "end": ("after_run", "ValueError: no service"),
    }
    assert (outcome.status, outcome.exit_code) == ("completed", 0)
    assert {one["hook"]: (one["point"], one["error"]) for one in summary(tmp_path)["disabled"]} == (
        failed
    )
    assert summary(tmp_path)["status"] == "completed"
    err = capsys.readouterr().err
    for name in ("no sensor", "no network", "no service"):
        assert name in err and name in read(tmp_path)
    assert "completed (without the hooks" in read(tmp_path).splitlines()[-1]


def test_the_last_lines_of_the_console_name_a_hook_that_was_left_out(tmp_path, capsys):
    make_classifier(
        hooks={"sensor": FailsInTraining()}, default_hooks=None, run_dir=tmp_path
    ).train()
    out = capsys.readouterr().out
    assert "completed (without the hook sensor, which failed) after 3 iterations" in out


def test_a_summary_that_its_own_hook_could_not_finish_is_finished(tmp_path):
    class Fragile(WriteMetrics):
        def after_train_epoch(self, run):
            raise OSError("stale handle")

    make_classifier(hooks={"metrics": Fragile()}, run_dir=tmp_path).train()
    assert summary(tmp_path)["status"] == "completed"
    assert [one["hook"] for one in summary(tmp_path)["disabled"]] == ["metrics"]


def test_an_evaluation_adds_to_what_the_training_was_left_without(tmp_path):
    hooks = {"train": FailsInTraining(), "end": FailsAtTheEnd(), "metrics": WriteMetrics()}
    trainer = make_classifier(hooks=hooks, run_dir=tmp_path)
    trainer.train()
    trainer.test()
    assert [one["hook"] for one in summary(tmp_path)["disabled"]] == ["train", "end"]


def test_a_failure_is_in_the_log_with_its_traceback(tmp_path):
    class Fatal(Hook):
        def after_train_iter(self, run):
            raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"):
        make_classifier(hooks=[Fatal()], run_dir=tmp_path).train()
    assert "Traceback" in read(tmp_path) and "raised by the hook 'fatal'" in read(tmp_path)
    assert "failed (RuntimeError: boom)" in read(tmp_path).splitlines()[-1]


def test_nothing_is_left_behind_after_a_run_and_after_a_failure(tmp_path):
    class Fatal(Hook):
        def after_val(self, run):
            raise RuntimeError("boom")

    logger = logging.getLogger("hookloop")
    before = (logger.level, list(logger.handlers), warnings.showwarning)
    make_classifier(hooks=[LogMetrics()], run_dir=tmp_path / "a").train()
    assert (logger.level, logger.handlers, warnings.showwarning) == before
    with pytest.raises(RuntimeError):
        make_classifier(hooks=[LogMetrics(), Fatal()], run_dir=tmp_path / "b").train()
    assert (logger.level, logger.handlers, warnings.showwarning) == before


def test_two_trainings_in_threads_have_logs_of_their_own(tmp_path):
    together = threading.Barrier(2)

    class Sensor(Hook):
        on_error = "disable"

        def after_train_iter(self, run):
            together.wait(30)
            raise ValueError(f"sensor of {run.dir.name}")

        def after_run(self, run):
            together.wait(30)

    class Wait(Hook):
        def after_run(self, run):
            together.wait(30)

    threads = [
        threading.Thread(
            target=make_classifier(
                hooks=[Sensor(), Wait(), WriteTo(Broken()).named(name)], run_dir=tmp_path / name
            ).train
        )
        for name in ("one", "two")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for name, other in (("one", "two"), ("two", "one")):
        text = read(tmp_path / name)
        assert text.count(f"sensor of {name}") == 1 and f"sensor of {other}" not in text
        assert text.count("The writer 'broken' failed") == 1


def test_two_loops_of_ones_own_at_once_have_logs_of_their_own(tmp_path, caplog):
    class Sensor(Hook):
        on_error = "disable"

        def before_train_iter(self, run):
            if run.progress.iter == 1:
                raise ValueError(f"sensor of {run.dir.name}")

    def trainer(name):
        return make_trainer(hooks=[Sensor()], run_dir=tmp_path / name)

    with trainer("one").loop() as first, trainer("two").loop() as second:
        for _ in zip(first, second, strict=True):
            pass
    for name, other in (("one", "two"), ("two", "one")):
        assert f"sensor of {name}" in read(tmp_path / name)
        assert f"sensor of {other}" not in read(tmp_path / name)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("end", ["sys.exit", "exception"])
def test_a_child_that_a_hook_forks_leaves_the_run_to_its_parent(tmp_path, end):
    class Fork(Hook):
        def after_train_iter(self, run):
            if run.progress.iter == 2:
                pid = os.fork()
                if pid == 0:
                    if end == "exception":
                        raise ValueError("in the child")
                    sys.exit(7)
                os.waitpid(pid, 0)
                found.append((run.dir / LOCK).read_text())
                found.append(summary(run.dir)["status"])

    found: list[str] = []
    parent = os.getpid()
    try:
        make_classifier(hooks=[Fork(), WriteMetrics()], run_dir=tmp_path).train()
    except BaseException:
        if os.getpid() != parent:
            os._exit(0)
        raise
    assert found[0].startswith(f"process {parent} on") and found[1] == "running"
    assert summary(tmp_path)["status"] == "completed"
    assert read(tmp_path).count("after iteration") == 1


def test_a_failure_is_reported_to_hooks_and_raised_whole(tmp_path):
    outcomes = []

    class Look(Hook):
        def on_exception(self, run, error):
            outcomes.append(error)

        def after_run(self, run):
            outcomes.append(run.outcome)

    def step(run, batch):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        make_trainer(hooks=[Look()], step=step, run_dir=tmp_path).train()
    assert isinstance(outcomes[0], ZeroDivisionError)
    assert (outcomes[1].status, outcomes[1].exit_code) == ("failed", 1)
    assert outcomes[1].reason == "ZeroDivisionError: mine"


def test_a_failure_in_an_evaluation_names_the_data():
    wrong = [(torch.ones(2, 3), torch.ones(2, 1))]
    trainer = make_trainer(val_data={"clean": make_data(4), "wrong": wrong})
    with pytest.raises(RuntimeError) as caught:
        trainer.train()
    assert caught.value.__notes__ == [
        "in the phase val, after iteration 3: the batch is (float32[2, 3], float32[2, 1])",
        "in model.0 (Linear(in_features=4, out_features=8, bias=True))",
        "To fix it: Linear takes 4 features in the last dimension, and got [2, 3]: "
        "write Linear(3, 8), or change the inputs.",
        "while evaluating val_data['wrong'], batch 1",
    ]


SCRIPT = """
import os, signal, sys
sys.path.insert(0, {root!r})
from tests.tiny import make_trainer, make_data
from hookloop.hooks import StopOnSignal, WriteMetrics, SaveCheckpoint

trainer = make_trainer(
    hooks=[StopOnSignal(), WriteMetrics(), SaveCheckpoint()], max_epochs=3, run_dir={run_dir!r}
)

@trainer.on("after_backward")
def strike(run):
    if run.progress.iter == 3:
        for _ in range({times}):
            os.kill(os.getpid(), signal.{name})

@trainer.on("after_train")
def ended(run):
    print("ended in order", run.progress.iter, flush=True)

trainer.train()
print("must not be reached")
"""


def strike(tmp_path, name, times=1):
    script = SCRIPT.format(
        root=str(Path(__file__).parents[3]), run_dir=str(tmp_path / "r"), name=name, times=times
    )
    return subprocess.run(
        [warm.python(), "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_ends_the_run_in_order_with_its_exit_code(tmp_path, name):
    done = strike(tmp_path, name)
    assert done.returncode == 128 + signal.Signals[name]
    assert done.stdout == "ended in order 4\n"
    assert f"{name}: ending after this iteration" in done.stderr
    summary = json.loads((tmp_path / "r" / "summary.json").read_text())
    assert (summary["status"], summary["exit_code"]) == ("interrupted", done.returncode)
    assert (tmp_path / "r" / iter_file(4)).is_file()


@pytest.mark.slow
def test_a_second_signal_ends_at_once(tmp_path):
    done = strike(tmp_path, "SIGTERM", times=2)
    assert done.returncode == -signal.SIGTERM
    assert "ended in order" not in done.stdout


def test_a_signal_restores_the_handlers_that_were_there(tmp_path):
    from hookloop.hooks import StopOnSignal

    before = signal.getsignal(signal.SIGTERM)
    trainer = make_trainer(hooks=[StopOnSignal()], max_epochs=5, run_dir=tmp_path)
    trainer.on("after_update")(lambda run: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(Interrupted) as ended:
        trainer.train()
    assert ended.value.code == 143
    assert trainer.run.progress.iter == 1
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_second_signal_ends_a_run_that_was_stopping_anyway(tmp_path):
    from hookloop.hooks import StopOnSignal

    trainer = make_trainer(hooks=[StopOnSignal()], max_epochs=5, run_dir=tmp_path)

    @trainer.on("after_update")
    def stop_and_strike(run):
        run.stop("enough")
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        trainer.train()


def test_what_was_being_saved_is_not_lost_with_a_state_that_cannot_be(tmp_path, monkeypatch):
    from hookloop.checkpoint.saving.checkpoints import Checkpoints

    closed = []
    monkeypatch.setattr(Checkpoints, "close", lambda self: closed.append(self) or [])

    class Odd(Hook):
        def state_dict(self):
            return {"odd": object()}

        def after_train_iter(self, run):
            run.save()

        def on_exception(self, run, error):
            run.save()

    with pytest.raises(CheckpointError, match="holds a object"):
        make_trainer(hooks=[Odd()], run_dir=tmp_path).train()
    assert closed


def test_a_signal_during_validation_leaves_it_unfinished(tmp_path):
    from hookloop.hooks import StopOnSignal

    seen = Record()
    trainer = make_trainer(
        hooks=[StopOnSignal(), seen], max_epochs=5, val_data=make_data(), run_dir=tmp_path
    )
    trainer.on("after_val_iter")(lambda run: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(Interrupted):
        trainer.train()
    assert seen.points.count("after_val_iter") == 1
    assert "after_val_epoch" not in seen.points
    assert seen.points[-1] == "after_run"
