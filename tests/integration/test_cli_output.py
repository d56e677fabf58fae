"""The command line where its output is lost, broken or full, and where a hook fails."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests import warm
from tests.names import epoch_file

from hookloop.runs.layout import RunDir

pytestmark = pytest.mark.slow

PROJECT = {
    "net.py": """
import torch
from hookloop import Hook


def loader():
    inputs = torch.randn(32, 2, generator=torch.Generator().manual_seed(0))
    return torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(inputs, (inputs[:, 0] > 0).long()), batch_size=4
    )


class Fails(Hook):
    on_error = "disable"

    def after_train_iter(self, run):
        raise ConnectionError("no \\x1b[31mservice")


class Prints(Hook):
    def after_train_iter(self, run):
        print("x" * 10_000, flush=True)
""",
    "config.yaml": """
seed: 0
max_epochs: 2
model: {type: torch.nn.Linear, in_features: 2, out_features: 2}
train_data: net.loader
val_data: net.loader
loss: cross_entropy
optimizer: {type: SGD, lr: 0.1}
hooks:
  prints: net.Prints
""",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in PROJECT.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def shell(
    command: str, cwd: Path, python: str = sys.executable
) -> subprocess.CompletedProcess[str]:
    """Run a command of a shell in which ``hookloop`` is ours; its code is that of hookloop."""
    script = f'set -o pipefail; hookloop() {{ "{python}" -m hookloop "$@"; }}; {command}'
    environment = {**os.environ, "PYTHONPATH": str(cwd)}
    return subprocess.run(
        ["bash", "-c", script],
        cwd=cwd,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize(
    "output",
    [
        "| head -1",
        ">&- 2>&-",
        "> /dev/full",
        pytest.param(">&-", marks=pytest.mark.long),
        pytest.param(">&- <&-", marks=pytest.mark.long),
    ],
)
def test_a_training_does_not_depend_on_its_output(project: Path, output: str) -> None:
    if "full" in output and not os.path.exists("/dev/full"):
        pytest.skip("the system has no full disk")
    done = shell(f"hookloop train config.yaml --run-dir run {output}", project)
    assert done.returncode == 0, done.stderr
    assert RunDir(project / "run").read_summary()["status"] == "completed"
    assert (project / "run" / epoch_file(2)).is_file()
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
    assert ("could not be written" in done.stderr) == ("full" in output)


def test_a_list_does_not_depend_on_its_output(tmp_path: Path) -> None:
    for number in range(2000):
        RunDir.create(tmp_path / "runs" / f"a-long-name-of-a-run-{number}").write_summary({})
    done = shell("hookloop runs | head -1", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert shell("hookloop points | head -1", tmp_path).returncode == 0


def test_a_hook_that_failed_is_in_the_last_line_and_if_wanted_in_the_exit_code(
    project: Path,
) -> None:
    train = "hookloop train config.yaml hooks.prints=null hooks.tracker=net.Fails"
    easy = shell(f"{train} --run-dir easy", project, warm.python())
    assert easy.returncode == 0, easy.stderr
    last = easy.stdout.splitlines()[-1]
    assert last.startswith("completed (without the hook tracker, which failed): easy")
    assert "ConnectionError: no \\x1b[31mservice" in easy.stderr
    assert "\x1b" not in easy.stderr + easy.stdout
    strict = shell(f"{train} --run-dir strict --strict", project, warm.python())
    assert strict.returncode == 3
    assert "completed (without" in strict.stdout.splitlines()[-1]
    again = shell("hookloop resume strict max_epochs=3 --strict", project, warm.python())
    assert again.returncode == 3


def test_evaluating_a_config_leaves_nothing_and_blocks_no_training(project: Path) -> None:
    command = "hookloop validate config.yaml run_dir=mine hooks.csv=WriteCSV"
    done = shell(command, project, warm.python())
    assert done.returncode == 0, done.stderr
    assert "val/loss" in done.stdout.splitlines()[-1]
    assert "metrics.csv" in done.stderr and "--run-dir" in done.stderr
    assert not (project / "runs").exists() and not (project / "mine").exists()
