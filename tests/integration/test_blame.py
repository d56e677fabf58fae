"""A planted bad sample is among the first two, whatever the model and the loss are made of."""

import json
import sys

import pytest
import torch
from click.testing import CliRunner
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from hookloop import Trainer, blame, hooks, replay
from hookloop.cli.main import cli
from hookloop.errors import HookloopError

SAMPLES, BATCH = 64, 8


class Samples(Dataset):
    """Samples of three classes; one has a label or inputs that are wrong, and each has an id."""

    def __init__(self, bad=None, kind="label", *, texts=False):
        self.inputs = torch.randn(SAMPLES, 6, generator=torch.Generator().manual_seed(1))
        self.targets = self.inputs[:, :3].argmax(1)
        self.texts = texts
        if bad is not None and kind == "label":
            self.targets[bad] = self.inputs[bad, :3].argmin()
        elif bad is not None:
            self.inputs[bad] *= -30

    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        pair = self.inputs[index], self.targets[index]
        return {"input": pair[0], "target": pair[1], "text": f"n{index}"} if self.texts else pair

    def id(self, index):
        return f"sample-{index}"


def net():
    return nn.Sequential(
        nn.Linear(6, 32), nn.BatchNorm1d(32), nn.Tanh(), nn.Dropout(0.3), nn.Linear(32, 3)
    )


def maker(data, **options):
    """Return a function that builds the arguments of a Trainer."""

    def make(run_dir):
        torch.manual_seed(0)
        given = {name: value() if callable(value) else value for name, value in options.items()}
        model = given.pop("model", None) or net()
        make_optimizer = given.pop("optimizers", None)
        return {
            "model": model,
            "train_data": DataLoader(data, batch_size=BATCH, shuffle=True),
            "loss": functional.cross_entropy,
            "optimizer": make_optimizer(model)
            if make_optimizer
            else torch.optim.SGD(model.parameters(), lr=0.3),
            "max_iters": 40,
            "seed": 3,
            "default_hooks": {
                "console": None,
                "checkpoint": hooks.SaveCheckpoint(every="8 iters", keep=None),
                "metrics": hooks.WriteMetrics(every=1),
            },
        } | given

    return make


def when_read(make, bad, after):
    """Return the first iteration after another one that reads a sample."""
    found = []

    given = make("unused")
    inputs = given["train_data"].dataset.inputs[bad]

    from hookloop import Hook

    class Find(Hook):
        draws_random_numbers = False

        def before_forward(self, run):
            batch = run.batch
            rows = batch["input"] if isinstance(batch, dict) else batch[0]
            if any(torch.equal(row, inputs) for row in rows):
                found.append(run.progress.iter + 1)

    Trainer(**given | {"hooks": [Find()], "default_hooks": False}).train()
    return next(one for one in found if one > after)


def check(tmp_path, make, bad, after, **options):
    Trainer(**make(tmp_path / "run"), run_dir=tmp_path / "run").train()
    at = when_read(make, bad, after)
    found = blame(tmp_path / "run", at=at, make=make, **options)
    assert bad in [one.index for one in found.samples[:2]], found.samples[:3]
    # To look moves no bit.
    assert replay(tmp_path / "run", at=at, make=make).difference is None
    return found


@pytest.mark.parametrize("after", [1, 30])
@pytest.mark.parametrize("kind", ["label", "outlier"])
def test_a_bad_sample_with_batch_norm_and_dropout(tmp_path, kind, after):
    found = check(tmp_path, maker(Samples(11, kind)), 11, after)
    assert all(one.exact for one in found.samples)
    assert found.samples[0].id.startswith("sample-")
    assert not found.why_not
    assert found.typical.keys() == {"loss", "alone", "gradient"}
    assert all(one.gradient is not None and one.target is not None for one in found.samples)


def test_with_accumulation_and_a_text(tmp_path):
    found = check(tmp_path, maker(Samples(11, texts=True), accumulate=2), 11, 5, gradients=False)
    assert {one.microbatch for one in found.samples} == {0, 1}
    assert next(one.text for one in found.samples if one.index == 11) == "n11"
    assert len(found.samples) == 2 * BATCH


class OwnLoss(nn.Module):
    """A model that returns its loss."""

    def __init__(self):
        super().__init__()
        self.net = net()

    def forward(self, inputs, targets):
        return {"loss": functional.cross_entropy(self.net(inputs), targets)}


def test_a_model_that_returns_its_loss(tmp_path):
    found = check(tmp_path, maker(Samples(11), model=OwnLoss, loss=None), 11, 20)
    assert not any(one.exact for one in found.samples)
    assert "evaluation mode" in found.why_not[0]
    assert all(one.gradient is not None for one in found.samples)


def contrastive(output, targets):
    """Outputs of one class are to be near each other: no function of rows."""
    rows = functional.normalize(output, dim=1)
    near = (rows @ rows.T / 0.2).fill_diagonal_(-1e9).log_softmax(1)
    same = (targets[:, None] == targets[None]).float().fill_diagonal_(0)
    return -(near * same).sum() / same.sum().clamp(min=1)


def test_a_contrastive_loss_is_marked_as_approximate(tmp_path):
    plain = lambda: nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 8))  # noqa: E731
    options = {"loss": lambda: contrastive, "model": plain}
    found = check(tmp_path, maker(Samples(11), **options), 11, 20)
    assert found.by == "loss"
    assert not any(one.exact for one in found.samples)
    assert "no function of rows" in " ".join(found.why_not)


class Gan(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.other = net(), net()


def test_two_optimizers_are_told_apart(tmp_path):
    def steps():
        def of(part):
            def step(run, batch):
                return functional.cross_entropy(getattr(run.model, part)(batch[0]), batch[1])

            return step

        return {"one": of("one"), "other": of("other")}

    def optimizers(model):
        return {
            name: torch.optim.SGD(getattr(model, name).parameters(), lr=0.3)
            for name in ("one", "other")
        }

    options = {"step": steps, "loss": None, "model": Gan, "optimizers": lambda: optimizers}
    found = check(tmp_path, maker(Samples(11, "outlier"), **options), 11, 2)
    assert {one.update for one in found.samples} == {"one_loss", "other_loss"}
    assert [one.index for one in found.samples[:2]] == [11, 11]


def test_a_step_that_needs_the_whole_batch_says_so(tmp_path):
    def step():
        def with_all(run, batch):
            if len(batch[0]) != BATCH:
                raise ValueError("the whole batch, please")
            return functional.cross_entropy(run.model(batch[0]), batch[1])

        return with_all

    make = maker(Samples(11), step=step, loss=None)
    Trainer(**make(tmp_path / "run"), run_dir=tmp_path / "run").train()
    found = blame(tmp_path / "run", at=9, make=make)
    assert "the whole batch, please" in " ".join(found.why_not)
    assert {one.alone for one in found.samples} == {None}
    assert replay(tmp_path / "run", at=9, make=make).difference is None


CONFIG = """
seed: 0
max_iters: 24
model: tests.integration.test_blame.net
train_data:
  type: DataLoader
  dataset: {type: tests.integration.test_blame.Samples, bad: 11}
  batch_size: 8
  shuffle: true
loss: cross_entropy
optimizer: {type: SGD, lr: 0.3}
default_hooks:
  checkpoint: {type: SaveCheckpoint, every: 8 iters, keep: null}
"""


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "config.yaml").write_text(CONFIG)
    run = CliRunner().invoke
    done = run(cli, ["train", "config.yaml", "--run-dir", "runs/a"])
    assert done.exit_code == 0, done.output
    done = run(cli, ["blame", "runs/a", "--iter", "12", "--json"])
    found = json.loads(done.stdout)
    assert (done.exit_code, found["exact"], found["iters"]) == (0, True, [12, 12])
    assert len(found["samples"]) == BATCH
    assert found["before"] == [7, 8, 9, 10, 11]
    shown = run(cli, ["blame", "runs/a", "--iter", "12", "--most", "3", "--before", "2"]).stdout
    assert "median of iterations 10 to 11" in shown
    assert run(cli, ["blame", "runs/a", "--iter", "25"]).exit_code == 2


def test_an_iteration_without_samples_to_see(tmp_path):
    make = maker(Samples(11))
    Trainer(**make(tmp_path / "run"), run_dir=tmp_path / "run").train()
    with pytest.raises(HookloopError, match="no iteration 41"):
        blame(tmp_path / "run", at=41, make=make)
