"""``hookloop check`` rejects what training would, also what comes from Python configs."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from hookloop.cli.main import cli

CONFIG = """\
import torch

model = torch.nn.Linear(2, 1)
train_data = [(torch.ones(4, 2), torch.ones(4, 1))]
loss = torch.nn.functional.mse_loss
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
STRANGER = "schedule = torch.optim.lr_scheduler.StepLR(torch.optim.SGD([torch.ones(1)], lr=1), 1)\n"


@pytest.mark.parametrize(
    ("rest", "overrides", "message"),
    [
        ("", [], "The training would never end"),
        ("max_epochs = 1\n" + STRANGER, [], "drives an optimizer that is not in this run"),
        ("max_epochs = 1\n", ["resume=true", "run_dir=runs/one"], "run_dir: 'runs/one' does not"),
        ("max_epochs = 1\n", ["resume=runs/one"], "resume: 'runs/one' does not exist"),
        ("max_epochs = 1\n", ["resume=true"], "resume=True needs run_dir="),
        ("max_epochs = 1\n", ["hooks.nope=null"], "there is no 'nope' to remove"),
        ("max_epochs = '3'\n", [], "expected int | None, got '3'. Write 3"),
    ],
)
def test_what_training_rejects_is_rejected(tmp_path: Path, rest, overrides, message, request):
    name = f"check_{abs(hash(request.node.name))}.py"  # A module of each name is loaded once.
    (tmp_path / name).write_text(CONFIG + rest)
    result = CliRunner().invoke(cli, ["check", name, *overrides])
    assert result.exit_code == 2
    assert message in result.output
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__") == [name]


def test_a_run_that_begins_or_continues_is_accepted(tmp_path: Path):
    (tmp_path / "check_auto.py").write_text(CONFIG + "max_epochs = 1\n")
    result = CliRunner().invoke(cli, ["check", "check_auto.py", "resume=auto", "run_dir=runs/one"])
    assert result.exit_code == 0


DATA = "torch.utils.data.TensorDataset(torch.ones(8, 2), torch.ones(8, 1))"


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        (
            f"train_data = torch.utils.data.DataLoader({DATA}, batch_size=3)\n",
            "batches of 3 samples",
        ),
        (
            f"data = {DATA}\n"
            "sampler = torch.utils.data.DistributedSampler(data, 4, 0)\n"
            "train_data = torch.utils.data.DataLoader(data, batch_size=4, sampler=sampler)\n"
            "del data, sampler\n",
            "train_data has a DistributedSampler",
        ),
    ],
)
def test_what_many_ranks_reject_is_rejected_without_starting_any(
    tmp_path: Path, rest, message, request
):
    name = f"check_ranks_{abs(hash(request.node.name))}.py"
    (tmp_path / name).write_text(f"{CONFIG}max_epochs = 1\n{rest}")
    alone = CliRunner().invoke(cli, ["check", name])
    assert alone.exit_code == 0, alone.output
    result = CliRunner().invoke(cli, ["check", name, "--ranks", "4"])
    assert result.exit_code == 2
    assert message in result.output


def test_what_fits_many_ranks_is_accepted(tmp_path: Path):
    loader = f"train_data = torch.utils.data.DataLoader({DATA}, batch_size=4)\n"
    (tmp_path / "check_four.py").write_text(f"{CONFIG}max_epochs = 1\n{loader}")
    result = CliRunner().invoke(cli, ["check", "check_four.py", "--ranks", "4"])
    assert result.exit_code == 0, result.output
    assert result.output.endswith("hooks, 4 ranks\n")
