import random
import threading

from tests.tiny import make_trainer

from hookloop.checkpoint.store.store import load
from hookloop.cli import verify_resume_process
from hookloop.hooks import SaveCheckpoint


def test_the_kill_draws_no_random_number_of_the_training(tmp_path, monkeypatch):
    killed = threading.Event()
    monkeypatch.setattr(verify_resume_process, "_kill", lambda pid: killed.set())
    hooks = [SaveCheckpoint(every=1), verify_resume_process.KillProcess(1, "while saving")]
    random.seed(0)
    before = random.getstate()
    make_trainer(hooks=hooks, max_iters=1, run_dir=tmp_path / "run").train()
    assert killed.wait(30)
    assert random.getstate() == before


def test_the_hook_that_kills_leaves_no_trace_in_the_last_checkpoint(tmp_path):
    never = verify_resume_process.KillProcess(10**9, "after_forward")
    make_trainer(hooks=[SaveCheckpoint(), never], run_dir=tmp_path, max_epochs=1).train()
    assert list(load(tmp_path / "epoch_1.pth")["hooks"]) == ["save_checkpoint"]
