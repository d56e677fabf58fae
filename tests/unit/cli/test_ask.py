import json
import subprocess
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests import warm

from hookloop.cli.main import cli
from hookloop.runs.reader import list_runs

SCRIPT = """
import time
import torch
from hookloop import Trainer
from hookloop.hooks import AnswerRequests

torch.manual_seed(0)
inputs = torch.randn(64, 4)
data = list(zip(inputs.split(8), inputs.sum(1, keepdim=True).split(8)))
model = torch.nn.Linear(4, 1)


def loss(output, target):
    time.sleep(0.005)
    return torch.nn.functional.mse_loss(output, target)


Trainer(
    model,
    train_data=data,
    val_data=data,
    loss=loss,
    optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
    max_epochs=100_000,
    run_dir="one",
    default_hooks={"console": None, "requests": AnswerRequests(period=0.1)},
).train()
"""


def ask(*arguments):
    done = CliRunner().invoke(cli, ["ask", "one", *arguments, "--json", "--wait", "60"])
    return done.exit_code, json.loads(done.stdout)


@pytest.mark.slow
def test_another_process_is_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    training = subprocess.Popen([warm.python(), "-c", SCRIPT], stderr=subprocess.PIPE, text=True)
    try:
        while not Path("one/metrics.jsonl").exists() and training.poll() is None:
            time.sleep(0.05)
        code, saved = ask("save")
        assert (code, saved["done"]) == (0, True)
        assert Path(saved["checkpoint"]).is_file()
        assert ask("validate")[1]["metrics"].keys() == {"val/loss"}
        (change,) = ask("set", "optimizer.lr=1e-4")[1]["changes"]
        assert (change["old"], change["new"]) == (0.1, 1e-4)
        code, rejected = ask("set", "optimizer.rate=1")
        assert code == 1
        assert "Its numbers are: lr" in rejected["reason"]
        assert ask("stop")[0] == 0
        assert training.wait(60) == 0
    finally:
        training.kill()
        training.communicate()
    code, refused = ask("save")
    assert code == 2
    assert "is not running: stopped" in refused["error"]
    assert list_runs("one")[0].status == "stopped"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("set",), "set needs KEY=VALUE"),
        (("save", "optimizer.lr=1"), "save takes no settings"),
        (("set", "optimizer.lr=fast"), "must be KEY=NUMBER"),
        (("set", "optimizer.lr"), "must be KEY=NUMBER"),
        (("set", "optimizer.lr=inf"), "must be KEY=NUMBER"),
        (("explode",), "'explode' is not one of"),
    ],
)
def test_mistakes_are_rejected(tmp_path, arguments, message):
    done = CliRunner().invoke(cli, ["ask", str(tmp_path), *arguments])
    assert done.exit_code == 2
    assert message in done.output
