"""Flipped bits are found, a transient fault leaves no trace, and to check moves no bit."""

import os
from functools import partial

import pytest
import torch
from tests.ranks import on_ranks
from tests.tiny import make_data
from torch import nn
from torch.nn import functional

from hookloop import CheckpointStore, Hook, Trainer
from hookloop.hooks import CheckArithmetic, SaveCheckpoint, WriteMetrics
from hookloop.runs import RunDir, history, read_interventions

CALLS = "TEST_CHECK_ARITHMETIC_CALLS"


def count():
    """Count calls where nothing of a training is kept: a processor does not go back either."""
    os.environ[CALLS] = str(int(os.environ.get(CALLS, "0")) + 1)
    return int(os.environ[CALLS])


class Flip(nn.Module):
    """Passes a tensor on, with a flipped bit in some calls of its forward or its backward."""

    def __init__(self, when=lambda call: False, *, backward=False):
        super().__init__()
        self.when, self.backward = when, backward

    def forward(self, inputs):
        if not self.training or not inputs.requires_grad:
            return inputs
        if self.backward:
            inputs = inputs * 1.0
            inputs.register_hook(lambda gradient: flipped(gradient, self.when))
            return inputs
        return flipped(inputs, self.when)


def flipped(tensor, when):
    if not when(count()):
        return tensor
    changed = tensor.detach().clone()
    changed.view(-1).view(torch.int32)[0] ^= 1 << 12
    return tensor + (changed - tensor).detach()


class Net(nn.Module):
    """With what a second pass may get wrong: buffers, dropout, a counter."""

    def __init__(self, flip=None):
        super().__init__()
        self.first, self.norm = nn.Linear(4, 8), nn.BatchNorm1d(8)
        self.flip, self.drop, self.last = flip or Flip(), nn.Dropout(0.3), nn.Linear(8, 1)
        self.calls = 0

    def forward(self, inputs):
        self.calls += 1
        noise = 0.01 * self.calls
        return self.last(self.drop(self.flip(torch.tanh(self.norm(self.first(inputs)))))) + noise


class Seen(Hook):
    """Observes each microbatch; a second pass is none."""

    def __init__(self):
        self.count = 0

    def after_loss(self, run):
        self.count += 1


def train(run_dir, *, check=True, flip=None, iters=9, **options):
    os.environ[CALLS] = "0"
    torch.manual_seed(0)
    model = options.pop("model", None) or Net(flip)
    more = [CheckArithmetic(every=3)] if check else []
    seen = Seen()
    trainer = Trainer(
        model,
        train_data=make_data(24, options.pop("batch_size", 4), shuffle=True),
        optimizer=options.pop("make_optimizer", partial(torch.optim.SGD, lr=0.05, momentum=0.9))(
            model.parameters()
        )
        if "optimizers" not in options
        else options.pop("optimizers")(model),
        **({} if "step" in options else {"loss": functional.mse_loss}),
        hooks=[*more, seen, SaveCheckpoint(every="3 iters", keep=None), WriteMetrics(every=1)],
        default_hooks=False,
        max_iters=iters,
        seed=1,
        run_dir=run_dir,
        **options,
    )
    outcome = trainer.train()
    return trainer, outcome, seen


def same(one, other, name="iter_9.pth"):
    sides = [CheckpointStore(path).load(name) for path in (one, other)]
    for key in ("model", "optimizers", "random", "progress"):
        assert str(sides[0].get(key)) == str(sides[1].get(key)), key
    assert all(map(torch.equal, *(side["model"].values() for side in sides)))
    losses = [history(path)["train/loss"] for path in (one, other)]
    assert losses[0].values == losses[1].values
    return True


def verdicts(run_dir):
    lines = [one for one in read_interventions(RunDir(run_dir)) if one["what"] == "arithmetic"]
    return [(one["iter"], one["verdict"], one["place"]) for one in lines]


@pytest.mark.parametrize(
    "options",
    [{}, {"accumulate": 2}, {"precision": "bf16"}, {"precision": "fp16"}, {"clip_norm": 0.1}],
)
def test_to_check_moves_no_bit(tmp_path, options):
    trainer, _, seen = train(tmp_path / "on", **options)
    train(tmp_path / "off", check=False, **options)
    assert same(tmp_path / "on", tmp_path / "off")
    assert seen.count == 9 * options.get("accumulate", 1)
    hook = next(one for one in trainer.run.hooks if isinstance(one, CheckArithmetic))
    assert hook.describe(trainer.run) == {"checked": 4, "faults": 0}  # The first one, 3, 6 and 9.
    assert verdicts(tmp_path / "on") == []


def test_a_gan_keeps_the_gradients_of_the_other_model(tmp_path):
    class Gan(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.other = Net(), Net()

    def steps():
        return {
            "one": lambda run, batch: run.model.other(run.model.one(batch[0]).repeat(1, 4)).mean(),
            "other": lambda run, batch: run.model.other(batch[0]).pow(2).mean(),
        }

    def optimizers(model):
        return {n: torch.optim.Adam(getattr(model, n).parameters()) for n in ("one", "other")}

    for name, check in (("on", True), ("off", False)):
        torch.manual_seed(0)
        train(tmp_path / name, check=check, model=Gan(), step=steps(), optimizers=optimizers)
    sides = [CheckpointStore(tmp_path / one).load("iter_9.pth")["model"] for one in ("on", "off")]
    assert all(map(torch.equal, *(side.values() for side in sides)))


# Iterations 3, 6 and 9 and the first one are computed twice: calls 1-2, 3, 4-5 (iteration 3), ...
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("call", [4, 5])
def test_a_transient_fault_leaves_no_trace(tmp_path, call, backward):
    train(tmp_path / "clean", check=False)
    _, outcome, _ = train(tmp_path / "run", flip=Flip(lambda now: now == call, backward=backward))
    assert outcome.status == "completed"
    assert same(tmp_path / "run", tmp_path / "clean")
    ((iteration, verdict, place),) = verdicts(tmp_path / "run")
    assert (iteration, verdict) == (2, "transient")
    assert place.startswith("the backward of" if backward else "the forward")
    if backward:
        assert "norm" in place or "first" in place, place


def test_a_fault_that_stays_stops_the_training(tmp_path):
    broken = Flip()
    broken.forward = lambda inputs: inputs * (1 + 1e-3 * max(0, count() - 3))
    with pytest.raises(FloatingPointError, match=r"three results.*forward of 'flip'"):
        train(tmp_path / "run", flip=broken)
    assert verdicts(tmp_path / "run")[0][1] == "persistent"


class Random(nn.Module):
    """A model that does not repeat itself."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 1)

    def forward(self, inputs):
        return self.net(inputs * (1 + count()))


def test_a_model_that_does_not_repeat_itself_is_told_so(tmp_path, caplog):
    _, outcome, _ = train(tmp_path / "run", model=Random())
    assert outcome.status == "completed"
    assert "does not repeat itself, first in" in caplog.text
    assert verdicts(tmp_path / "run") == []


def test_a_step_that_trains_by_itself_is_rejected(tmp_path):
    def step(run, batch):
        with torch.no_grad():
            run.model.last.bias += 1
        return run.model(batch[0]).mean()

    with pytest.raises(Exception, match="cannot compute an update twice"):
        train(tmp_path / "run", step=step)


def test_a_resumed_run_goes_on_with_the_same_bits(tmp_path):
    train(tmp_path / "whole")
    train(tmp_path / "cut", iters=5)
    train(tmp_path / "cut", resume=True)
    assert same(tmp_path / "whole", tmp_path / "cut")


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"accumulate": 2}])
def test_on_two_ranks(tmp_path, options):
    for name, check in (("on", True), ("off", False)):
        on_ranks(lambda n=name, c=check: train(tmp_path / n, check=c, **options) and None, 2)
    assert same(tmp_path / "on", tmp_path / "off")


@pytest.mark.slow
def test_a_fault_on_one_of_two_ranks(tmp_path):
    def with_fault():
        rank = int(os.environ["RANK"])
        train(tmp_path / "run", flip=Flip(lambda now: rank == 1 and now == 4))

    on_ranks(with_fault, 2)
    on_ranks(lambda: train(tmp_path / "clean", check=False) and None, 2)
    assert same(tmp_path / "run", tmp_path / "clean")
