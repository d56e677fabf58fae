"""``hookloop verify-resume``: when two final checkpoints are the same."""

from pathlib import Path

import click
import pytest
from tests.tiny import make_trainer
from tests.unit.cli.conftest import Invoke

from hookloop.cli.verify_resume import MOMENTS, Proof
from hookloop.core.points import POINTS
from hookloop.hooks import SaveCheckpoint


@pytest.fixture
def proof(tmp_path: Path) -> Proof:
    with click.Context(click.Command("verify-resume")):
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
def test_a_run_that_is_too_short_is_rejected(project: Path, invoke: Invoke) -> None:
    result = invoke("verify-resume", "config.yaml", "max_iters=1", "--iters", "6")
    assert result.exit_code == 2
    assert "The run ends after 1 iterations: there is nothing to kill." in result.stderr
