"""``hookloop try``: what is printed, its exit codes, and that nothing stays."""

import json
import tempfile
from pathlib import Path

import pytest
from tests import warm
from tests.unit.cli.conftest import Invoke


@pytest.fixture
def scratch(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory for temporary files."""
    folder = tmp_path_factory.mktemp("scratch")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def names(project: Path) -> list[str]:
    return sorted(path.name for path in project.iterdir() if path.name != "__pycache__")


@pytest.mark.slow
def test_every_part_is_tried_and_nothing_stays(
    project: Path, invoke: Invoke, scratch: Path
) -> None:
    result = invoke("try", "config.yaml", "run_dir=runs/one", "hooks=[{WriteWandb: {}}]")
    assert result.exit_code == 0, result.output
    for words in (
        "2 iterations,",
        "validation      2 batches,",
        "restored into a new trainer with the same bits",
        "test            2 batches",
        "peak memory",
        "(estimated from 2 iterations): 8 iterations, 2 validations of 4 batches",
        "write_wandb: WriteWandb sends to a service",
    ):
        assert words in result.stdout
    assert names(project) == ["cli_project.py", "config.yaml"]
    assert not list(scratch.glob("hookloop*"))  # wandb has folders of its own, until it ends.


@pytest.mark.parametrize(
    ("override", "code", "words"),
    [
        ("model.in_features=3", 1, "in model (Linear(in_features=3, out_features=1, bias=True))"),
        ("loss=nll_loss", 1, "in training, iteration 1: the batch is"),
        ("optimizer.lrr=1", 2, "Did you mean 'lr'"),
        ("train_data=null", 2, "nothing to train on"),
        ("val_data=cli_broken.wide", 1, "while evaluating val_data, batch 1"),
    ],
)
def test_what_fails_names_its_place(
    project: Path, invoke: Invoke, scratch: Path, override: str, code: int, words: str
) -> None:
    (project / "cli_broken.py").write_text(
        "import torch\n\n\ndef wide():\n    return [(torch.ones(2, 5), torch.ones(2, 1))]\n"
    )
    result = invoke("try", "config.yaml", override)
    assert result.exit_code == code, result.output
    assert words in result.stderr
    assert not list(scratch.iterdir())


LEAKY = """
from hookloop import Hook


class Forgets(Hook):
    count = 0

    def after_train_iter(self, run):
        self.count += 1
        print("a print of the project")

    def state_dict(self):
        return {"count": self.count}
"""


def test_a_hook_that_forgets_its_state_is_found(project: Path, invoke: Invoke) -> None:
    (project / "cli_leaky.py").write_text(LEAKY + "\n    def load_state_dict(self, state): ...\n")
    result = invoke("try", "config.yaml", "hooks=[cli_leaky.Forgets]")
    assert result.exit_code == 1
    assert "is not the same as the saved one" in result.stderr
    assert "hooks.forgets.count" in result.stderr


@pytest.mark.slow
def test_the_command_prints_one_object(project: Path) -> None:
    (project / "cli_loud.py").write_text(LEAKY.replace('return {"count"', 'return {} or {"count"'))
    done = warm.run("try", "config.yaml", "--json", "hooks=[{type: cli_loud.Forgets}]")
    found = json.loads(done.stdout)
    assert done.returncode == 1
    assert "a print of the project" in done.stderr
    assert not found["is_restored"]
    assert (found["iters"], found["val_batches"], found["test_batches"]) == (2, 2, 2)
    assert found["total_iters"] == 8
    assert found["checkpoint_bytes"] > 0
    assert found["seconds_per_iter"] > 0
    assert names(project) == ["cli_loud.py", "cli_project.py", "config.yaml"]


@pytest.mark.slow
def test_ranks_try_together_and_the_first_reports(
    project: Path, invoke: Invoke, scratch: Path
) -> None:
    result = invoke("try", "config.yaml", "--ranks", "2", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["ranks"], found["iters"], found["is_restored"]) == (2, 2, True)
    failed = invoke("try", "config.yaml", "model.in_features=3", "--ranks", "3")
    assert failed.exit_code == 1
    assert "failed in iteration 0: RuntimeError: mat1 and mat2 shapes" in failed.stderr
    assert "in training, iteration 1: the batch is" in failed.stderr
    assert "in model (Linear(in_features=3, out_features=1, bias=True))" in failed.stderr
    assert invoke("try", "config.yaml", "optimizer.lrr=1", "--ranks", "2").exit_code == 2
    assert names(project) == ["cli_project.py", "config.yaml"]
    assert not list(scratch.iterdir())
