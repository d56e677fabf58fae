"""A resume is proved by kills that count, and by comparing two final checkpoints."""

import random
import threading
from pathlib import Path

import pytest
import torch
from tests.tiny import make_trainer
from tests.unit.cli.conftest import Invoke

from hookloop.checkpoint.store.store import load
from hookloop.cli.prove.task_process import MODULE
from hookloop.engine.points import POINTS
from hookloop.errors import HookloopError
from hookloop.hooks import SaveCheckpoint
from hookloop.short_runs import verify_resume
from hookloop.short_runs.task import KILLED, TrainingTask
from hookloop.short_runs.verify_resume import (
    MOMENTS,
    KillProcess,
    Verification,
    adopt_close,
    save_interval,
    victim_of,
)


def make(folder: Path, iters: int = 4, ranks: int = 1, resume_ranks: int = 1) -> Verification:
    folder.mkdir(exist_ok=True)
    config = str(Path("config.yaml").absolute())
    task = TrainingTask("verify-resume", config, (), (), str(folder / "run"), iters, ranks)
    return Verification(MODULE, task, resume_ranks=resume_ranks, tell=lambda text: None)


def train(run_dir: Path, iters: int) -> None:
    make_trainer(hooks=[SaveCheckpoint(every=1)], max_iters=iters, run_dir=run_dir).train()


def test_the_moments_are_mount_points_or_a_save() -> None:
    assert set(MOMENTS) - {"while saving"} <= {point.name for point in POINTS}


@pytest.mark.parametrize(("iters", "every"), [(1, 1), (8, 2), (40, 5)])
def test_saves_are_frequent_but_not_too_frequent(iters: int, every: int) -> None:
    assert save_interval(iters) == every


def test_the_final_checkpoints_are_compared(tmp_path: Path) -> None:
    train(tmp_path / "a", 3)
    train(tmp_path / "again", 3)
    train(tmp_path / "short", 2)
    proof = make(tmp_path)
    assert proof._iterations("a") == 3
    assert proof._iterations("none") == 0
    assert proof._compare("a", "again") == []
    assert any("iter" in str(difference) for difference in proof._compare("a", "short"))


@pytest.mark.slow
@pytest.mark.usefixtures("warm_python")
def test_a_run_that_is_too_short_is_rejected(project: Path, invoke: Invoke) -> None:
    result = invoke("verify-resume", "config.yaml", "max_iters=1", "--iters", "6")
    assert result.exit_code == 2
    assert "The run ends after 1 iteration: there is nothing to kill." in result.stderr


def test_rounding_is_forgiven_on_another_number_of_ranks(tmp_path: Path) -> None:
    one = {"a": torch.tensor([1.0, 2.0]), "b": [torch.tensor([3])], "c": 0.5, "d": 4}
    near = {"a": torch.tensor([1.0, 2.00001]), "b": [torch.tensor([3])], "c": 0.50001, "d": 4}
    assert torch.equal(adopt_close(one, near)["a"], one["a"])
    assert adopt_close(one, near)["c"] == 0.5
    far = {"a": torch.tensor([1.0, 2.1]), "b": [torch.tensor([4])], "c": 0.6, "d": 5}
    kept = adopt_close(one, far)
    assert kept["a"].tolist() == far["a"].tolist()
    assert (kept["b"], kept["c"], kept["d"]) == (far["b"], 0.6, 5)
    train(tmp_path / "a", 3)
    train(tmp_path / "short", 2)
    proof = make(tmp_path, resume_ranks=2)
    assert proof._compare("a", "a") == []
    assert any("iter" in str(one) for one in proof._compare("a", "short"))


def test_on_many_ranks_anybody_may_be_killed() -> None:
    assert victim_of(1, random.Random()) == "all ranks"
    draw = random.Random(0)
    drawn = {victim_of(2, draw) for _ in range(200)}
    assert drawn == {"rank 0", "rank 1", "all ranks", "launcher"}


# --- kills that count


class Tried(Verification):
    """Takes notes of kills instead of training; those at some iterations test nothing."""

    def __init__(self, folder: Path, without_effect: set[int]) -> None:
        task = TrainingTask("verify-resume", "config.yaml", (), (), str(folder / "run"), 40)
        super().__init__(MODULE, task)
        self.without_effect, self.saved, self.tried = without_effect, 0, []

    def _kill_at(self, iteration: int, done: int, ranks: int) -> str | None:
        assert iteration > self.saved, "the process before this one was resumed from there"
        self.tried.append(iteration)
        if iteration in self.without_effect:
            return None
        self.saved = iteration - iteration % 5
        return f"{iteration}"

    def _iterations(self, name: str) -> int:
        return self.saved


@pytest.mark.parametrize("kills", [1, 3])
def test_a_kill_that_tests_nothing_is_made_up_for_elsewhere(tmp_path: Path, kills: int) -> None:
    for _ in range(50):
        one = Tried(tmp_path, set(range(5, 40, 2)))
        found = one._kill_often(40, kills)
        assert len(set(one.tried)) == len(one.tried)
        # Unless the last that counted came so late that nothing was left behind it.
        assert len(found) == kills or not set(range(one.saved + 1, 40)) - set(one.tried)
        assert all(int(how) % 2 == 0 for how in found)


def test_that_no_kill_counted_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HookloopError, match="No kill took effect"):
        Tried(tmp_path, set(range(40)))._kill_often(40, 1)


@pytest.mark.slow
@pytest.mark.usefixtures("warm_python", "project")
def test_a_kill_that_tests_no_resume_is_undone_and_does_not_count(tmp_path: Path) -> None:
    proof = make(tmp_path / "runs")
    assert (
        proof._train(
            "killed", {"iter": 2, "moment": "after_update", "who": "all ranks"}, (KILLED,)
        ).code
        == KILLED
    )
    saved = proof._iterations("killed")
    assert 0 < saved < 4
    # Each of these comes when the training is complete, or not at all.
    assert proof._kill_at(5, 4, 1) is None
    assert proof._iterations("killed") == saved
    how = proof._kill_at(3, 4, 1)
    assert how is not None and how.startswith("3 (") and proof._iterations("killed") < 4


@pytest.mark.slow
@pytest.mark.usefixtures("warm_python", "project")
def test_more_kills_than_a_training_has_room_for_are_said(invoke: Invoke) -> None:
    result = invoke("verify-resume", "config.yaml", "max_iters=3", "--iters", "6", "--kills", "5")
    assert result.exit_code == 0, result.output
    undisturbed, killed, only, exact = result.stdout.splitlines()
    assert undisturbed == "undisturbed: 3 iterations."
    assert "resumed from 3" not in killed
    assert only.startswith(f"Only {killed.count('resumed from')} of 5 kills tested a resume")
    assert exact.startswith("exact:")


# --- in the process


def test_the_kill_draws_no_random_number_of_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = threading.Event()
    monkeypatch.setattr(verify_resume, "_kill", lambda pid: killed.set())
    hooks = [SaveCheckpoint(every=1), KillProcess(1, "while saving")]
    random.seed(0)
    before = random.getstate()
    make_trainer(hooks=hooks, max_iters=1, run_dir=tmp_path / "run").train()
    assert killed.wait(30)
    assert random.getstate() == before
    assert (tmp_path / "run.kill").read_text() == "1", "where it was killed"


def test_the_hook_that_kills_leaves_no_trace_in_the_last_checkpoint(tmp_path: Path) -> None:
    never = KillProcess(10**9, "after_forward")
    make_trainer(hooks=[SaveCheckpoint(), never], run_dir=tmp_path, max_epochs=1).train()
    assert list(load(tmp_path / "epoch_1.pth")["hooks"]) == ["save_checkpoint"]
