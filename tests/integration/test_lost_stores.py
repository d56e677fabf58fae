"""A store that goes away, a full disk, a directory that disappears: training continues."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager

import pytest
from tests.names import epoch_file, iter_file
from tests.stores import Unreliable, open_unreliable
from tests.tiny import make_classifier

from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.engine.hook import Hook
from hookloop.hooks import SaveCheckpoint, WriteMetrics
from hookloop.runs.checkpoint_names import best_name


class At(Hook):
    """Does something after an iteration."""

    def __init__(self, **actions):
        self.actions = {int(name.removeprefix("iter_")): one for name, one in actions.items()}

    def after_train_iter(self, run):
        if run.progress.iter in self.actions:
            self.actions[run.progress.iter]()


@pytest.fixture
def url():
    yield open_unreliable()
    Unreliable.become("well")


def train(run_dir, save, *hooks, iters=50, **options):
    trainer = make_classifier(
        max_iters=iters, run_dir=run_dir, hooks=[save, WriteMetrics(every=1), *hooks], **options
    )
    return trainer, trainer.train()


def wait_for_checkpoint(run_dir, name):
    """Wait until a checkpoint is durable: it is written beside the training."""
    end = time.monotonic() + 60
    while not (run_dir / "last_checkpoint").exists() or name not in os.listdir(run_dir):
        assert time.monotonic() < end
        time.sleep(0.01)


def names(location):
    return {name for name in CheckpointStore(location).storage.names() if name.endswith(".pth")}


@pytest.mark.slow
@pytest.mark.parametrize("best", [None, "val/accuracy"])
def test_training_waits_once_for_a_store_that_hangs_and_the_run_ends(tmp_path, url, caplog, best):
    save = SaveCheckpoint(1, directory=url, max_wait=0.5, best=best)
    goes = At(iter_5=lambda: Unreliable.become("hangs"))
    trainer, outcome = train(tmp_path / "run", save, goes)
    assert (outcome.status, trainer.run.progress.iter, outcome.exit_code) == ("completed", 50, 1)
    assert "no answer from its store" in outcome.problem
    assert Unreliable.disturbed == 1  # Each call would take 60 s.
    assert caplog.text.count("Training continues without waiting for it.") == 1
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert (summary["status"], summary["problem"]) == ("completed", outcome.problem)
    Unreliable.become("well")
    again = SaveCheckpoint(1, directory=url)
    _, outcome = train(tmp_path / "run", again, iters=60, resume=True)
    assert (outcome.problem, outcome.status) == (None, "completed")


@pytest.mark.slow
def test_a_store_that_fails_slowly_does_not_slow_the_training_down(tmp_path, url):
    goes = At(iter_5=lambda: Unreliable.become("fails", 0.7))
    _, outcome = train(tmp_path, SaveCheckpoint(1, directory=url, max_wait=3), goes)
    assert "the bucket is gone" in outcome.problem
    assert Unreliable.disturbed < 20  # Of 45 saves, each of which would take 0.7 s or more.


def test_a_slow_store_gets_every_checkpoint(tmp_path, url):
    goes = At(iter_2=lambda: Unreliable.become("slow", 0.02))
    save = SaveCheckpoint(1, directory=url, keep=None)
    _, outcome = train(tmp_path / "run", save, goes, iters=6)
    assert outcome.problem is None
    Unreliable.become("well")
    assert names(f"{url}/run") == {iter_file(number) for number in range(1, 7)}


@pytest.mark.slow
def test_a_store_that_comes_back_gets_the_newest(tmp_path, url):
    save = SaveCheckpoint(1, directory=url, max_wait=0.2)
    goes = At(iter_5=lambda: Unreliable.become("hangs"), iter_40=lambda: Unreliable.become("well"))
    _, outcome = train(tmp_path / "run", save, goes)
    assert outcome.problem is None
    found = CheckpointStore(f"{url}/run").newest()
    assert found[1]["progress"]["iter"] == 50


@pytest.mark.slow
def test_a_store_that_hangs_does_not_keep_checkpoints_from_another(tmp_path, url):
    goes = At(iter_5=lambda: Unreliable.become("hangs"))
    remote = SaveCheckpoint(1, directory=url, max_wait=0.3).named("remote")
    _, outcome = train(tmp_path / "run", SaveCheckpoint(1, keep=3), remote, goes)
    assert "unreliable://" in outcome.problem
    assert names(tmp_path / "run") == {iter_file(48), iter_file(49), iter_file(50)}


@pytest.mark.slow
def test_a_run_whose_directory_is_removed_reports_it_and_continues_to_write(tmp_path, caplog):
    run_dir = tmp_path / "run"

    def remove():
        wait_for_checkpoint(run_dir, iter_file(10))
        shutil.rmtree(run_dir, ignore_errors=True)

    removes = At(iter_20=remove)
    _, outcome = train(
        run_dir, SaveCheckpoint(10), removes, iters=45, setup={"config": {"name": "mine"}}
    )
    assert outcome.problem is None
    assert caplog.text.count("were deleted while it is trained in") == 1
    assert caplog.text.count("metrics.jsonl' was deleted") == 1
    lines = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    trained = [
        line["iter"] for line in lines if line["phase"] == "train" and line["span"] == "iter"
    ]
    assert trained == list(range(1, 46))
    assert {"config.yaml", "summary.json", iter_file(45)} <= set(os.listdir(run_dir))
    assert train(run_dir, SaveCheckpoint(10), iters=50, resume=True)[1].status == "completed"


def test_a_run_whose_directory_is_moved_writes_where_it_should(tmp_path, capsys):
    run_dir = tmp_path / "run"

    def move():
        wait_for_checkpoint(run_dir, iter_file(10))  # A save that fails would be reported.
        run_dir.rename(tmp_path / "moved")

    _, outcome = train(run_dir, SaveCheckpoint(10), At(iter_20=move), iters=45)
    assert outcome.problem is None
    lines = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    trained = [one["iter"] for one in lines if (one["phase"], one["span"]) == ("train", "iter")]
    assert trained == list(range(1, 46))
    assert "completed after iteration 45" in (run_dir / "run.log").read_text()
    assert "cannot be written" not in capsys.readouterr().err


def test_a_directory_removed_after_the_last_save_gets_it_again(tmp_path):
    run_dir = tmp_path / "run"

    class Remove(Hook):
        priority = 100

        def after_train(self, run):
            while not (run_dir / iter_file(9)).exists():
                time.sleep(0.01)
            shutil.rmtree(run_dir, ignore_errors=True)

    _, outcome = train(run_dir, SaveCheckpoint(9), Remove(), iters=9)
    assert outcome.problem is None
    assert {"summary.json", iter_file(9), "metrics.jsonl"} <= set(os.listdir(run_dir))
    assert json.loads((run_dir / "summary.json").read_text())["status"] == "completed"


READ_ONLY = """
import os, pathlib, sys
from tests.integration.test_lost_stores import At, make_classifier
from hookloop.hooks import ExportModel, PublishCheckpoint

def train(run_dir, at_end):
    hooks = [At(iter_9=at_end), ExportModel(format="torchscript"), PublishCheckpoint()]
    trainer = make_classifier(max_iters=9, run_dir=run_dir, default_hooks=None, hooks=hooks)
    return trainer, trainer.train()

home = pathlib.Path(sys.argv[1])
trainer, outcome = train(home / "well", lambda: None)
assert outcome.exit_code == 0, outcome
if os.geteuid() == 0:  # Permissions do not stop root.
    os.chown(home, 65534, 65534)
    os.setuid(65534)
trainer, outcome = train(home / "run", lambda: (home / "run").chmod(0o555))
(home / "run").chmod(0o755)
print("weights", trainer.run.model[0].weight.sum(), outcome.status, outcome.exit_code)
print(outcome.problem)
"""


@pytest.mark.slow
def test_a_read_only_directory_at_the_end_loses_no_weights():
    with tempfile.TemporaryDirectory() as home:  # Unlike tmp_path, another user may enter it.
        done = subprocess.run(
            [sys.executable, "-c", READ_ONLY, home],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
    assert done.returncode == 0, done.stderr
    assert "weights tensor(" in done.stdout
    assert "completed 1\n" in done.stdout
    assert f"{epoch_file(3)}' could not be saved: [Errno 13] Permission denied" in done.stdout


@pytest.mark.parametrize("code", [errno.EROFS, errno.EIO, errno.ENOSPC])
def test_a_hook_that_cannot_write_at_the_end_does_not_lose_the_weights(tmp_path, code):
    class Writes(Hook):
        def after_run(self, run):
            raise OSError(code, os.strerror(code), str(run.dir / "mine.txt"))

    _, outcome = train(tmp_path, SaveCheckpoint(), Writes(), iters=3)
    assert [one.hook for one in outcome.disabled] == ["writes"]
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["status"], summary["disabled"][0]["hook"]) == ("completed", "writes")


@pytest.mark.parametrize("error", [ValueError, ConnectionError, SystemExit])
def test_any_other_failure_at_the_end_is_raised(tmp_path, error):
    class Fails(Hook):
        def after_run(self, run):
            raise error("mine")

    with pytest.raises(error):
        train(tmp_path, SaveCheckpoint(), Fails(), iters=3)
    assert json.loads((tmp_path / "summary.json").read_text())["status"] == "completed"


def test_a_summary_whose_first_write_fails_is_written_again(tmp_path, monkeypatch):
    """One error of the disk, at the worst moment."""
    from hookloop.runs import files

    fsync, failed = os.fsync, []

    class Break(Hook):
        def after_train(self, run):
            def broken(number):
                if not failed and "summary" in os.readlink(f"/proc/self/fd/{number}"):
                    failed.append(number)
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
                fsync(number)

            monkeypatch.setattr(files.os, "fsync", broken)

    train(tmp_path, SaveCheckpoint(), Break(), iters=3)
    assert failed
    assert json.loads((tmp_path / "summary.json").read_text())["status"] == "completed"


@contextmanager
def room_for(store, count):
    """Let a directory have space for this many checkpoints and no more."""
    size = max(path.stat().st_size for path in store.glob("*.pth"))
    usage = shutil.disk_usage

    def limited(path):
        held = {(one.stat().st_ino, one.stat().st_size) for one in store.glob("*.pth")}
        free = count * size + size // 2 - sum(one for _, one in held)
        return usage(path)._replace(free=max(0, free))

    shutil.disk_usage = limited
    try:
        yield
    finally:
        shutil.disk_usage = usage


@pytest.mark.parametrize(
    ("keep", "room", "left", "problem"),
    [
        (2, 2, {iter_file(8), iter_file(9)}, False),
        (3, 2, {iter_file(8), iter_file(9)}, False),
        (1, 1, {iter_file(3)}, True),  # The only good one is not deleted for one that may fail.
    ],
)
def test_on_a_full_disk_the_oldest_is_deleted(tmp_path, keep, room, left, problem):
    train(tmp_path / "run", SaveCheckpoint(1, keep=keep), iters=3)
    save = SaveCheckpoint(1, keep=keep)
    with room_for(tmp_path / "run", room):
        _, outcome = train(tmp_path / "run", save, iters=9, resume=True)
    assert names(tmp_path / "run") == left
    assert bool(outcome.problem) == problem


def test_the_best_and_those_kept_forever_are_never_deleted(tmp_path):
    class Falling(Hook):
        """Lets the first validation be the best."""

        writes = ("val/score",)

        def after_val_epoch(self, run, metrics):
            run.metrics.put("val/score", float(-run.progress.iter))

    options = {"keep": 3, "keep_every": 2, "best": "val/score", "rule": "greater"}
    run_dir = tmp_path / "run"
    train(run_dir, SaveCheckpoint(1, **options), Falling(), iters=4, val_every=1)
    before = names(run_dir)
    assert {best_name("score", iter_file(1)), iter_file(2), iter_file(4)} <= before
    with room_for(run_dir, 4):
        save = SaveCheckpoint(1, **options)
        train(run_dir, save, Falling(), iters=9, val_every=1, resume=True)
    after = names(run_dir)
    assert {best_name("score", iter_file(1)), iter_file(2), iter_file(4)} <= after
    assert CheckpointStore(run_dir).newest() is not None


def test_an_interrupted_wait_for_a_store_is_in_the_summary(tmp_path, url):
    def go_away():
        Unreliable.become("hangs")
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "run", SaveCheckpoint(3, directory=url), At(iter_3=go_away), iters=3)
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert summary["status"] == "interrupted"
    assert f"{iter_file(3)}' could not be saved: the wait for its store" in summary["problem"]
