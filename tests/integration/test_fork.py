"""A fork is a run whose past is another run's: equal to the bit, or what is missing is said."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from tests.ranks import on_ranks

from hookloop import CheckpointStore, Hook, HookloopError, build, fork, load, replay
from hookloop.cli.main import cli
from hookloop.runs import RunDir, history, past_of, read_tree
from hookloop.runs.identity import read_identity
from hookloop.trainer.intended_changes import Resume

MODULE = """
import torch
from torch import nn

def samples(count=88):
    inputs = torch.randn(count, 6, generator=torch.Generator().manual_seed(1))
    return torch.utils.data.TensorDataset(inputs, inputs[:, :3].argmax(1))

def net():
    return nn.Sequential(
        nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Dropout(0.3), nn.Linear(16, 3)
    )
"""

CONFIG = """
seed: 0
max_iters: 60
model: fork_project.net
train_data:
  {type: DataLoader, dataset: {type: fork_project.samples}, batch_size: 8, shuffle: true}
loss: cross_entropy
optimizer: {type: SGD, lr: 0.05, momentum: 0.9}
default_hooks:
  console: null
  checkpoint: {type: SaveCheckpoint, every: 10 iters, keep: null}
  metrics: {type: WriteMetrics, every: 1}
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "fork_project.py").write_text(MODULE)
    (tmp_path / "config.yaml").write_text(CONFIG)
    build(load("config.yaml"), "runs/a").train()
    yield tmp_path
    sys.modules.pop("fork_project", None)


def train(run_dir, *hooks, **limits):
    trainer = build(load(run_dir), run_dir, resume=True)
    for hook in hooks:
        trainer._planner.hooks.append(hook)
    return trainer.train(**limits)


def run(*arguments):
    return CliRunner().invoke(cli, [str(one) for one in arguments])


def ends_as(one, other):
    """Whether two runs end with the same bits, and the same curve."""
    sides = [CheckpointStore(path).load("iter_60.pth") for path in (one, other)]
    assert all(map(torch.equal, *(side["model"].values() for side in sides)))
    losses = [history(path)["train/loss"] for path in (one, other)]
    assert losses[0].at() == losses[1].at()
    return True


def iters_of(run_dir, **options):
    return history(run_dir, **options)["train/loss"].iters


def test_a_fork_without_a_change_is_the_parent(project):
    before = {path: path.read_bytes() for path in Path("runs/a").iterdir() if path.is_file()}
    made = fork("runs/a", at=30)
    assert (made.is_linked, made.replayed) == (True, 0)
    assert os.path.samefile(made.checkpoint, "runs/a/iter_30.pth")
    train(made.run_dir)
    assert ends_as("runs/a", made.run_dir)
    assert iters_of(made.run_dir) == list(range(1, 61))
    assert iters_of(made.run_dir, past=False) == list(range(31, 61))
    assert {path: path.read_bytes() for path in before} == before  # Nothing of it was written.
    assert run("diff", "runs/a", made.run_dir, "--json").stdout.count('"from": 30')


def test_between_two_checkpoints_the_way_is_repeated(project):
    made = fork("runs/a", at=37)
    assert (made.is_linked, made.replayed) == (False, 7)
    train(made.run_dir)
    assert ends_as("runs/a", made.run_dir)
    # Its own iterations can be replayed, and those before are the parent's.
    assert replay(made.run_dir, at=39).difference is None
    assert replay(made.run_dir, at=12).checked
    with pytest.raises(HookloopError, match="1:37 and for 38:40|30:37 and for 38:40"):
        replay(made.run_dir, at="30:40")


def test_the_command_changes_and_the_tree_shows_it(project):
    done = run("fork", "runs/a@20", "optimizer.lr=0.01", "--iters", "15", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["run_dir"] == "runs/a@20"
    assert found["trained"]["reason"] == "35 iterations are done"
    assert (found["linked"], found["changed"]) == (True, ["optimizer.lr"])
    done = run("fork", "runs/a@20@35", "seed=1")  # A fork of a fork.
    assert done.exit_code == 0, done.output
    listed = json.loads(run("tree", "--json").stdout)
    (root,) = listed["tree"]
    (child,) = root["children"]
    assert child["changed"] == [{"key": "optimizer.lr", "old": 0.05, "new": 0.01}]
    assert [one["run"] for one in child["children"]] == ["a@20@35"]
    shown = run("tree").stdout
    assert "└─ a@20  from 20: optimizer.lr 0.05 -> 0.01  35 iterations" in shown
    assert "   └─ a@20@35  from 35: seed 0 -> 1" in shown
    assert "a@20" in run("runs").stdout
    # The chain of pasts: 20 of the first, 15 of the second, its own.
    whole, parts = history("runs/a@20@35")["train/loss"], history("runs/a")["train/loss"]
    assert whole.iters == list(range(1, 61))
    assert whole.values[:20] == parts.values[:20]
    assert whole.values[20:35] == history("runs/a@20")["train/loss"].values[20:35]


def test_what_cannot_be_changed_leaves_nothing(project):
    for given, code in (("model.0=1", 2), ("optimizer.typo=1", 2), ("optimizer.type=Adam", 2)):
        assert run("fork", "runs/a@20", given).exit_code == code, given
    for place in ("runs/a@61", "runs/a@0", "runs/b@3", "runs/a@x"):
        assert run("fork", place).exit_code == 2, place
    assert [path.name for path in Path("runs").iterdir()] == ["a"]


class Die(Exception):
    pass


class DieAt(Hook):
    def __init__(self, at):
        self.at = at

    def after_train_iter(self, run):
        if run.progress.iter == self.at:
            raise Die


def test_one_that_is_cut_before_its_first_save_begins_again_with_its_change(project):
    made = fork("runs/a", at=30, change=["optimizer.lr=0.01"], into="runs/whole")
    train(made.run_dir)
    fork("runs/a", at=30, change=["optimizer.lr=0.01"], into="runs/cut")
    for at in (31, 35):
        with pytest.raises(Die):
            train("runs/cut", DieAt(at))
    for path in Path("runs/a").glob("*.pth"):  # Its own link is enough.
        path.unlink()
    train("runs/cut")
    assert ends_as("runs/whole", "runs/cut")
    assert read_identity(RunDir("runs/cut")).run_id != read_identity(RunDir("runs/a")).run_id


def test_a_parent_that_was_moved_or_deleted(project):
    made = fork("runs/a", at=30)
    train(made.run_dir)
    os.rename("runs/a", "runs/b")
    assert iters_of(made.run_dir) == list(range(1, 61))
    os.rename("runs", "elsewhere")  # Both of them.
    assert iters_of("elsewhere/a@30") == list(range(1, 61))
    shutil.rmtree("elsewhere/b")
    past = past_of(RunDir("elsewhere/a@30"))
    assert "is not there" in past.missing
    assert iters_of("elsewhere/a@30") == list(range(31, 61))
    assert "its parent is not there" in run("tree", "elsewhere").stdout
    train("elsewhere/a@30", max_iters=62)
    assert "iterations until 30 are missing" in Path("elsewhere/a@30/run.log").read_text()


def test_a_parent_that_goes_another_way_is_no_past_from_there_on(project):
    made = fork("runs/a", at=30)
    losses = history(made.run_dir)["train/loss"].values
    given = load("runs/a", ["optimizer.lr=0.5"])
    build(given, "runs/a", Resume("runs/a/iter_20.pth", ["optimizer.lr"])).train()
    assert history(made.run_dir)["train/loss"].values == losses[:20]
    assert "21 to 30" in past_of(RunDir(made.run_dir)).missing
    train(made.run_dir)  # Its own bits are not touched by that.
    build(load("config.yaml"), "runs/again").train()
    sides = [
        CheckpointStore(path).load("iter_60.pth")["model"] for path in (made.run_dir, "runs/again")
    ]
    assert all(map(torch.equal, *(side.values() for side in sides)))


def test_a_parent_is_deleted_only_with_its_children_or_without_them(project):
    train(fork("runs/a", at=30).run_dir)
    train(fork("runs/a@30", at=40).run_dir)
    losses = history("runs/a@30@40")["train/loss"].at()
    refused = run("rm", "runs/a", "--yes")
    assert refused.exit_code == 2
    assert "a@30" in refused.stderr and "--detach" in refused.stderr
    assert run("rm", "runs/a", "--detach", "--yes").exit_code == 0
    assert not Path("runs/a").exists()
    assert history("runs/a@30@40")["train/loss"].at() == losses
    assert history("runs/a@30")["train/loss"].iters == list(range(1, 61))
    assert replay("runs/a@30", at=32).difference is None
    done = run("rm", "runs/a@30", "--with-children", "--yes", "--json")
    assert len(json.loads(done.stdout)["deleted"]) == 2
    assert not list(Path("runs").iterdir())


def test_a_script_forks_its_runs(project):
    from tests.tiny import make_model, make_trainer

    def make(run_dir, lr=0.05, **more):
        model = make_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        own = {"console": None, "checkpoint": None}
        return make_trainer(
            model=model, optimizer=optimizer, max_iters=12, run_dir=run_dir, seed=1,
            default_hooks=own | more.pop("hooks", {}), **more,
        )  # fmt: skip

    from hookloop import hooks

    saving = {"checkpoint": hooks.SaveCheckpoint(every="3 iters", keep=None)}
    make("scripted/a", hooks=saving).train()
    made = fork("scripted/a", at=6, change=["optimizer.lr"], into="scripted/b")
    make(made.run_dir, 0.01, hooks={}, resume=True).train()
    (root,) = read_tree("scripted")
    assert [one.changed for one in root.children] == [[("optimizer.lr", 0.05, 0.01)]]
    with pytest.raises(HookloopError, match="script"):
        fork("scripted/a", at=6, change=["optimizer.lr=1"])


@pytest.mark.slow
def test_on_two_ranks(project):
    given = load("config.yaml", ["train_data.batch_size=4"])
    on_ranks(lambda: build(given, "runs/two").train() and None, 2)
    made = fork("runs/two", at=30, change=["optimizer.momentum=0.9"])
    on_ranks(lambda: train(made.run_dir) and None, 2)
    assert ends_as("runs/two", made.run_dir)
