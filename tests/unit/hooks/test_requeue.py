"""A script called scontrol, which records its arguments, replaces SLURM."""

import os
import signal

import pytest
from tests.names import iter_file
from tests.tiny import make_trainer

from hookloop.errors import HookError
from hookloop.hooks import Requeue, SaveCheckpoint, StopOnSignal
from hookloop.outcome import Interrupted

JOB = {"SLURM_JOB_ID": "42"}
TASK = {"SLURM_JOB_ID": "42", "SLURM_ARRAY_JOB_ID": "42", "SLURM_ARRAY_TASK_ID": "3"}


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Run as a SLURM job, with an scontrol that records its calls and exits with a given code."""
    asked, files = tmp_path / "asked", tmp_path / "files"
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)

    def start(environment, code=0):
        (tmp_path / "bin").mkdir()
        command = tmp_path / "bin" / "scontrol"
        command.write_text(
            f"#!/bin/sh\necho $* >> {asked}\nls {tmp_path}/run > {files}\n"
            f"[ {code} = 0 ] || echo 'Job is pending' >&2\nexit {code}\n"
        )
        command.chmod(0o755)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)

    start.asked = lambda: asked.read_text() if asked.exists() else ""
    start.files = lambda: files.read_text().split()
    return start


def train(tmp_path, name=None, hook=None, signals=None):
    trainer = make_trainer(
        hooks=[StopOnSignal(signals), SaveCheckpoint(), hook or Requeue()],
        max_epochs=2,
        run_dir=tmp_path / "run",
    )

    @trainer.on("after_train_iter")
    def send(run):
        if name and run.progress.iter == 2:
            os.kill(os.getpid(), signal.Signals[name])

    if name is None:
        return trainer.train()
    with pytest.raises(Interrupted) as ended:
        trainer.train()
    return ended.value.outcome


@pytest.mark.parametrize(("environment", "job"), [(JOB, "42"), (TASK, "42_3")])
def test_the_job_is_requeued_when_everything_is_saved(tmp_path, slurm, environment, job):
    slurm(environment)
    outcome = train(tmp_path, "SIGUSR1")
    assert outcome.exit_code == 138
    assert slurm.asked() == f"requeue {job}\n"
    # Listed by scontrol itself, so the files were there when the job was requeued.
    assert {iter_file(2), "last_checkpoint"} <= set(slurm.files())
    log = (outcome.run_dir / "run.log").read_text()
    assert f"returning job {job} to the queue, for its restart 1" in log


@pytest.mark.parametrize("name", [None, "SIGINT", "SIGTERM"])
def test_a_run_that_is_done_or_cancelled_is_not_requeued(tmp_path, slurm, name):
    slurm(JOB)
    train(tmp_path, name)
    assert slurm.asked() == ""


def test_outside_of_slurm_nothing_happens(tmp_path, slurm, monkeypatch):
    slurm({})
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    train(tmp_path, "SIGUSR1")
    assert slurm.asked() == ""


@pytest.mark.parametrize(("restarts", "is_asked"), [("", True), ("1", True), ("2", False)])
def test_the_number_of_restarts_is_limited(tmp_path, slurm, restarts, is_asked, caplog):
    slurm({**JOB, "SLURM_RESTART_COUNT": restarts})
    train(tmp_path, "SIGUSR1", Requeue(max_restarts=2))
    assert bool(slurm.asked()) == is_asked
    assert ("was already restarted 2 times" in caplog.text) != is_asked


def test_an_error_of_slurm_is_reported(tmp_path, slurm, caplog):
    slurm(JOB, code=1)
    assert train(tmp_path, "SIGUSR1").status == "interrupted"
    assert "job 42 could not be requeued: Job is pending" in caplog.text


def test_what_could_not_work_is_rejected_at_the_start(tmp_path, slurm, monkeypatch):
    slurm(JOB)
    with pytest.raises(HookError, match="SIGUSR1.*SIGUSR2"):
        train(tmp_path, hook=Requeue(), signals=["SIGTERM"])
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(HookError, match="'scontrol'.*PATH"):
        train(tmp_path / "other", hook=Requeue())


@pytest.mark.parametrize("options", [{"signals": ["SIGUSR"]}, {"max_restarts": -1}])
def test_wrong_arguments_are_rejected(options):
    with pytest.raises(HookError, match="Requeue: "):
        Requeue(**options)
