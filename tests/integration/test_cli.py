"""The command line as a user meets it: a small project, real trainings, real processes."""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
import yaml
from tests import warm
from tests.names import epoch_file

from hookloop.runs.layout import RunDir

pytestmark = pytest.mark.slow

PROJECT = {
    "net.py": """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.body = nn.Linear(2, width)
        self.head = nn.Linear(width, 2)

    def forward(self, inputs):
        return self.head(torch.relu(self.body(inputs)))


def loader(count: int = 64, seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(count, 2, generator=generator)
    data = torch.utils.data.TensorDataset(inputs, (inputs[:, 0] > 0).long())
    return torch.utils.data.DataLoader(data, batch_size=16, shuffle=seed == 0)


def accuracy(output, targets):
    return (output.argmax(1) == targets).float().mean()
""",
    "my_hooks.py": '''
from hookloop import HOOKS, Hook


@HOOKS.register()
class Fail(Hook):
    def __init__(self, at: int = 2) -> None:
        self.at = at

    def after_train_iter(self, run):
        if run.progress.iter == self.at:
            raise ValueError("the sensor fell off")


class Typo(Hook):
    def after_trian_iter(self, run): ...


class Ready(Hook):
    """Report to the parent process that training has begun."""

    def after_train_iter(self, run):
        if run.progress.iter == 3:
            print("ready", flush=True)
''',
    "config.yaml": """
seed: 0
max_epochs: 3
model: net.Net
train_data: net.loader
val_data: {type: net.loader, seed: 1}
data: {test: {type: net.loader, seed: 2}}
loss: cross_entropy
metrics: {accuracy: net.accuracy}
optimizer: {type: AdamW, lr: 1e-2, groups: [{match: "*.bias", weight_decay: 0}]}
schedule: {type: OneCycleLR, max_lr: 1e-2, total_steps: auto}
imports: [my_hooks]
hooks:
  stop: {type: StopAfter, epochs: 2}
""",
}


def hookloop(*args: str, cwd: Path, **options: str) -> subprocess.CompletedProcess[str]:
    return warm.run(*args, cwd=cwd, env={**os.environ, **options})


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose config was trained once, into the directory ``runs/first``."""
    project = tmp_path_factory.mktemp("project")
    for name, text in PROJECT.items():
        (project / name).write_text(text.lstrip())
    done = hookloop("train", "config.yaml", "--run-dir", "runs/first", cwd=project)
    assert done.returncode == 0, done.stderr
    (project / "output.txt").write_text(done.stdout)
    return project


@pytest.fixture
def project(trained: Path, tmp_path: Path) -> Path:
    """A copy of the trained project, to be changed freely."""
    return Path(shutil.copytree(trained, tmp_path / "project"))


def weights(run: Path, name: str) -> dict[str, object]:
    import torch

    loaded: dict[str, object] = torch.load(run / name, weights_only=True)["model"]
    return loaded


def test_training_ends_with_one_line_about_it(trained: Path) -> None:
    last = (trained / "output.txt").read_text().splitlines()[-1]
    assert last.startswith("stopped (2 epochs are done): runs/first  train_epoch/loss ")
    assert "val/accuracy 0." in last
    assert "test/accuracy 0." in last


def test_the_written_config_trains_the_same_again_from_anywhere(
    trained: Path, tmp_path: Path
) -> None:
    import torch

    done = hookloop("train", str(trained / "runs/first"), "--run-dir", "second", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    first = weights(trained / "runs/first", epoch_file(2))
    second = weights(tmp_path / "second", epoch_file(2))
    assert all(torch.equal(first[name], second[name]) for name in first)  # type: ignore[arg-type]


def test_a_directory_that_holds_a_run_is_rejected(project: Path) -> None:
    done = hookloop("train", "config.yaml", "--run-dir", "runs/first", cwd=project)
    assert done.returncode == 2
    assert done.stderr.startswith("error: 'runs/first' already holds a run: resume it (--resume")


def test_a_run_continues_where_it_ended(project: Path) -> None:
    done = hookloop("train", "runs/first", "--resume", "hooks.stop=null", cwd=project)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("completed: runs/first  ")
    assert (project / f"runs/first/{epoch_file(3)}").is_file()


def test_resuming_finds_the_newest_run_of_the_same_config(project: Path) -> None:
    done = hookloop("train", "config.yaml", "--resume", cwd=project)
    assert done.returncode == 0, done.stderr
    assert "runs/first" in done.stdout.splitlines()[-1]
    other = hookloop("train", "config.yaml", "--resume", "model.width=4", cwd=project)
    assert other.returncode == 2
    assert "there is no run of this config under 'runs' to resume" in other.stderr


def test_a_run_is_resumed_with_its_own_config_and_made_longer(project: Path) -> None:
    changes = ["hooks.stop=null", "max_epochs=4"]
    done = hookloop("resume", "runs/first", *changes, cwd=project)
    assert done.returncode == 0, done.stderr
    assert "Resumed with a changed config: " in done.stderr
    assert "max_epochs: 3 -> 4" in done.stderr
    assert "hooks.stop: " in done.stderr
    assert (project / f"runs/first/{epoch_file(4)}").is_file()
    written = yaml.safe_load((project / "runs/first/config.yaml").read_text())
    assert written["max_epochs"] == 4
    again = hookloop("resume", "runs/first", cwd=project)
    assert again.returncode == 0, again.stderr
    assert "changed config" not in again.stderr


def test_a_resume_goes_back_to_the_checkpoint_that_is_given(project: Path) -> None:
    records = project / "runs/first/metrics.jsonl"
    before = len(records.read_text().splitlines())
    done = hookloop("resume", f"runs/first/{epoch_file(1)}", cwd=project)
    assert done.returncode == 0, done.stderr
    assert len(records.read_text().splitlines()) == before + 1  # The test is made once more.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["config.yaml"], "'config.yaml' is not a run to resume: give the directory of a run"),
        (["nowhere"], "'nowhere' is not a run to resume"),
        (["runs/first", "model.width=4"], "is of another model"),
        (["runs/first", "optimizer.type=SGD"], "optimizer.type: 'AdamW' -> 'SGD'"),
    ],
)
def test_what_cannot_be_resumed_is_rejected(
    project: Path, arguments: list[str], message: str
) -> None:
    done = hookloop("resume", *arguments, cwd=project)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_resume_is_proved_on_the_projects_own_config(project: Path) -> None:
    arguments = ["config.yaml", "hooks.stop=null", "--iters", "8", "--kills", "2"]
    done = hookloop("verify-resume", *arguments, cwd=project)
    assert done.returncode == 0, done.stdout + done.stderr
    first, second, third = done.stdout.splitlines()
    assert first == "undisturbed: 8 iterations."
    assert re.fullmatch(r"killed after iteration (\d \([\w ]+; resumed from \d\)[,.] ?){2}", second)
    assert third.startswith("exact: every tensor and counter")


@pytest.mark.long
def test_a_resume_that_is_not_exact_is_reported_with_the_part_and_the_reason(project: Path) -> None:
    (project / "own.py").write_text(
        "import itertools, net, torch\n"
        "class Own(torch.utils.data.Dataset):\n"
        "    def __init__(self):\n"
        "        self.noise = (number % 7 / 7 for number in itertools.count())\n"
        "    def __len__(self):\n"
        "        return 64\n"
        "    def __getitem__(self, index):\n"
        "        return torch.full((2,), next(self.noise)), index % 2\n"
        "def loader():\n"
        "    return torch.utils.data.DataLoader(Own(), batch_size=16)\n"
    )
    arguments = ["config.yaml", "train_data=own.loader", "hooks.stop=null"]
    done = hookloop("verify-resume", *arguments, "--iters", "8", "--kills", "3", cwd=project)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "error: the resumed run is not the same as the undisturbed one." in done.stderr
    assert "  model.body.weight: " in done.stderr
    assert "noise (generator): no checkpoint holds it." in done.stderr


@pytest.mark.long
def test_hooks_that_change_the_training_are_found(project: Path) -> None:
    (project / "watching.py").write_text(
        "import torch\n"
        "from hookloop import Hook\n"
        "class Watch(Hook):\n"
        "    def after_train_iter(self, run):\n"
        "        run.metrics.put('train/noise', torch.rand(1))\n"
        "class Shrink(Hook):\n"
        "    def after_train_iter(self, run):\n"
        "        with torch.no_grad():\n"
        "            run.model.head.weight.mul_(0.5)\n"
        "class Push(Shrink):\n"
        "    takes_part_in_training = True\n"
    )
    hooks = "hooks=[{type: watching.Watch}, {type: watching.Push}]"
    arguments = ["config.yaml", "default_hooks=false", "schedule=null", "--iters", "6"]
    done = hookloop("verify-hooks", *arguments, hooks, cwd=project)
    assert done.returncode == 0, done.stdout + done.stderr
    head, watch, push, *_ = (line.split() for line in done.stdout.splitlines()[1:])
    assert head[0] == "hook" and watch == ["watch", "Watch", "observes", "nothing"]
    assert push[:4] == ["push", "Push", "takes", "part"] and "weights:" in push
    done = hookloop("verify-hooks", *arguments, "hooks=[{type: watching.Shrink}]", cwd=project)
    assert done.returncode == 1
    assert "declared as observing, but they change the training: shrink" in done.stderr


@pytest.mark.parametrize("verb", ["test", "validate"])
def test_a_run_is_evaluated_with_its_newest_checkpoint(project: Path, verb: str) -> None:
    done = hookloop(verb, "runs/first", cwd=project)
    assert done.returncode == 0, done.stderr
    phase = "test" if verb == "test" else "val"
    last = done.stdout.splitlines()[-1]
    assert last.startswith(f"runs/first/{epoch_file(2)}  {phase}/loss ")
    accuracy = (project / "output.txt").read_text().partition(f"{phase}/accuracy ")[2].split()[0]
    assert last.endswith(f"{phase}/accuracy {accuracy}")


def test_a_run_is_evaluated_with_the_checkpoint_that_is_given_and_stays_as_it_is(
    project: Path,
) -> None:
    config = (project / "runs/first/config.yaml").read_text()
    best = RunDir(project / "runs/first").read_summary()["best"]
    older = hookloop(
        "validate", "runs/first", "--checkpoint", f"runs/first/{epoch_file(1)}", cwd=project
    )
    newest = hookloop("validate", "runs/first", "val_data.count=32", cwd=project)
    assert older.returncode == newest.returncode == 0, older.stderr + newest.stderr
    label, _, loss = older.stdout.splitlines()[-1].partition("  val/loss ")
    epoch_1 = (project / "output.txt").read_text().partition("epoch 1/3  val: loss ")[2]
    assert label == f"runs/first/{epoch_file(1)}" and loss.split()[0] == epoch_1.split()[0]
    assert (project / "runs/first/config.yaml").read_text() == config
    assert RunDir(project / "runs/first").read_summary()["best"] == best


def test_a_config_is_evaluated_with_the_checkpoint_that_is_given(project: Path) -> None:
    done = hookloop(
        "test", "config.yaml", "--checkpoint", f"runs/first/{epoch_file(1)}", cwd=project
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith(f"runs/first/{epoch_file(1)}  test/loss ")
    assert [run.name for run in (project / "runs").iterdir()] == ["first"]
    kept = ("--checkpoint", f"runs/first/{epoch_file(1)}", "--run-dir", "kept")
    assert hookloop("test", "config.yaml", *kept, cwd=project).returncode == 0
    assert (project / "kept" / "summary.json").is_file()


def test_runs_are_listed(trained: Path) -> None:
    _, line = hookloop("runs", cwd=trained).stdout.splitlines()
    assert line.startswith("first  stopped (2 epochs are done)  2       8      val/accuracy ")


def test_check_builds_everything_and_leaves_nothing_behind(project: Path) -> None:
    shutil.rmtree(project / "runs")
    done = hookloop("check", "config.yaml", cwd=project)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "config.yaml: nothing to reject.  Net: 42 parameters, 12 iterations, 11 hooks\n"
    )
    assert not (project / "runs").exists()


def test_check_reports_all_problems_at_once(project: Path) -> None:
    (project / "bad.yaml").write_text(
        "_base_: config.yaml\n"
        "optimizer: {lr: fast}\n"
        "hooks:\n"
        "  stop: {epoch: 3}\n"
        "  other: StopAftr\n"
        "max_epoch: 3\n"
    )
    done = hookloop("check", "bad.yaml", "seed=x", cwd=project)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "error: bad.yaml:2: optimizer.lr: expected float, got 'fast'.",
        "error: bad.yaml:4: hooks.stop.epoch: StopAfter has no argument 'epoch'. "
        "Did you mean 'epochs'?",
        "error: bad.yaml:5: hooks.other: no hook is named 'StopAftr'. Did you mean 'StopAfter'?",
        "error: bad.yaml:6: max_epoch: there is no such key. Did you mean 'max_epochs'?",
        "error: command line: seed=x: seed: expected int | None, got 'x'.",
    ]


def test_check_reports_what_the_engine_rejects(project: Path) -> None:
    done = hookloop("check", "config.yaml", "hooks.trip=my_hooks.Typo", cwd=project)
    assert done.returncode == 2
    assert "after_trian_iter: no such mount point. Did you mean 'after_train_iter'?" in done.stderr
    taken = hookloop("check", "config.yaml", "run_dir=runs/first", cwd=project)
    assert taken.returncode == 2
    assert "already holds a run" in taken.stderr


def test_plan_shows_who_acts_where(trained: Path) -> None:
    done = hookloop("plan", "config.yaml", cwd=trained)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["point", "hook", "priority", "every", "reads", "writes"]
    place = next(n for n, line in enumerate(lines) if line.startswith("after_train_iter "))
    assert any(line.split()[:2] == ["stop", "50"] for line in lines[place : place + 6])
    assert any(line.startswith("No hook acts at: ") for line in lines)
    assert lines[-1].split()[0] == "lr" and "OneCycleLR" in lines[-1]  # The schedule's curve.


def test_a_failed_run_is_reported_in_short_with_its_line(project: Path) -> None:
    arguments = ("train", "config.yaml", "hooks.fail.type=Fail", "default_hooks.console=null")
    done = hookloop(*arguments, cwd=project)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "error: ValueError: the sensor fell off",
        "  in my_hooks.py:11, after_train_iter",
        '    raise ValueError("the sensor fell off")',
        "  raised by the hook 'fail' (Fail) at after_train_iter",
        "  --traceback shows all",
    ]
    full = hookloop(*arguments, "--traceback", cwd=project)
    assert full.returncode == 1
    assert "Traceback (most recent call last):" in full.stderr
    assert full.stderr.rstrip().endswith("raised by the hook 'fail' (Fail) at after_train_iter")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "confg.yaml"], "error: there is no config file 'confg.yaml'. Did you mean"),
        (["train"], "Missing argument 'CONFIG'"),
        (["train", "config.yaml", "--run-dri", "x"], "No such option"),
        (["train", "broken.yaml"], "error: broken.yaml:2: not valid YAML: "),
        (["train", "circle.yaml"], "error: circle.yaml:1: '_base_' forms a circle: "),
        (["runs", "nowhere"], "there is no directory 'nowhere'"),
    ],
)
def test_what_cannot_be_read_is_rejected(project: Path, arguments: list[str], message: str) -> None:
    (project / "broken.yaml").write_text("seed: 0\nmodel: [a\n")
    (project / "circle.yaml").write_text("_base_: circle.yaml\n")
    done = hookloop(*arguments, cwd=project)
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.parametrize("wanted", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_in_order(project: Path, wanted: signal.Signals) -> None:
    command = [warm.command(), "train", "config.yaml", "--run-dir", "runs/long"]
    changes = ["max_epochs=100000", "schedule=null", "hooks={ready: my_hooks.Ready}"]
    process = subprocess.Popen(
        [*command, *changes], cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("ready"):
            break
    process.send_signal(wanted)
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 128 + wanted, errors
    assert f"interrupted ({wanted.name}" in output.splitlines()[-2]
    assert output.splitlines()[-1] == "hookloop resume runs/long continues it."


def test_a_python_config_trains_and_its_written_config_does_too(project: Path) -> None:
    (project / "experiment.py").write_text(
        "from torch.nn.functional import cross_entropy as _cross_entropy\n"
        "from net import Net\n"
        "_base_ = 'config.yaml'\n"
        "model = dict(type=Net, width=4)\n"
        "hooks = [dict(type='StopAfter', epochs=1, priority='VERY_LOW')]\n"
        "default_hooks = dict(console=None)\n"
        "def loss(output, targets):\n"
        "    return 2 * _cross_entropy(output, targets)\n"
    )
    done = hookloop("train", "experiment.py", "--run-dir", "runs/python", cwd=project)
    assert done.returncode == 0, done.stderr
    written = yaml.safe_load((project / "runs/python/config.yaml").read_text())
    assert written["model"] == {"type": "net.Net", "width": 4}
    assert written["loss"] == "experiment.loss"
    again = hookloop("train", "runs/python", "--run-dir", "runs/again", cwd=project)
    assert again.returncode == 0, again.stderr
    assert again.stdout.partition("  ")[2] == done.stdout.partition("  ")[2]
