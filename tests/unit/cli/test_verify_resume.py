"""``hookloop verify-resume``: when two final checkpoints are the same."""

from pathlib import Path

import pytest
import torch
from tests.tiny import make_trainer
from tests.unit.cli.conftest import Invoke

from hookloop.cli.verify_resume import KILLED, MOMENTS, Proof, adopt_close
from hookloop.engine.points import POINTS
from hookloop.hooks import SaveCheckpoint


@pytest.fixture
def proof(tmp_path: Path) -> Proof:
    return Proof(tmp_path, Path("config.yaml"), (), 4)


def train(run_dir: Path, iters: int) -> None:
    make_trainer(hooks=[SaveCheckpoint(every=1)], max_iters=iters, run_dir=run_dir).train()


def test_the_moments_are_mount_points_or_a_save() -> None:
    assert set(MOMENTS) - {"while saving"} <= {point.name for point in POINTS}


def test_the_final_checkpoints_are_compared(proof: Proof, tmp_path: Path) -> None:
    train(tmp_path / "a", 3)
    train(tmp_path / "again", 3)
    train(tmp_path / "short", 2)
    assert proof._iterations("a") == 3
    assert proof._compare("a", "again") == []
    assert any("iter" in str(difference) for difference in proof._compare("a", "short"))


def test_a_run_without_a_checkpoint_has_no_iterations(proof: Proof) -> None:
    assert proof._iterations("none") == 0


@pytest.mark.slow
@pytest.mark.usefixtures("warm_python")
def test_a_run_that_is_too_short_is_rejected(project: Path, invoke: Invoke) -> None:
    result = invoke("verify-resume", "config.yaml", "max_iters=1", "--iters", "6")
    assert result.exit_code == 2
    assert "The run ends after 1 iteration: there is nothing to kill." in result.stderr


def test_rounding_is_forgiven_on_another_number_of_ranks(proof: Proof, tmp_path: Path) -> None:
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
    assert proof._compare("a", "a", exactly=False) == []
    assert any("iter" in str(one) for one in proof._compare("a", "short", exactly=False))


def test_on_many_ranks_anybody_may_be_killed(proof: Proof) -> None:
    assert proof._victim(1) == {}
    drawn = {str(proof._victim(2)["who"]) for _ in range(200)}
    assert drawn == {"rank 0", "rank 1", "all ranks", "launcher"}


@pytest.mark.slow
@pytest.mark.usefixtures("warm_python")
def test_a_kill_that_tests_no_resume_is_undone_and_does_not_count(
    project: Path, tmp_path: Path
) -> None:
    proof = Proof(tmp_path / "runs", project / "config.yaml", (), 4)
    (tmp_path / "runs").mkdir()
    proof._train("killed", {"iter": 2, "moment": "before_train_iter"}, (KILLED,))
    saved = proof._iterations("killed")
    assert 0 < saved < 4
    # Each of these comes when the training is complete, or not at all.
    assert proof._kill_at(5, 4, 1) == []
    assert proof._iterations("killed") == saved
    (how,) = proof._kill_at(3, 4, 1)
    assert how.startswith("3 (") and proof._iterations("killed") < 4
