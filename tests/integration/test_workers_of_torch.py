"""With seed_samples="workers" a training has the losses of a plain loop, also after a kill."""

import multiprocessing
import random
import signal

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from hookloop import Hook, Trainer
from hookloop.data.random.states import seed_all
from hookloop.hooks import SaveCheckpoint

EPOCHS = 3


class Noisy(Dataset):
    """Samples with noise from all three generators."""

    def __init__(self, count):
        self.inputs = torch.randn(count, 4, generator=torch.Generator().manual_seed(1))

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        noise = torch.rand(4) + random.random() + np.random.rand()
        return self.inputs[index] + noise, self.inputs[index].sum(0, keepdim=True)


def seed_worker(worker):
    np.random.seed(worker + 5)


def make_parts(persistent):
    """Make a model with dropout, its optimizer, and loaders with two workers and with one."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.4), torch.nn.Linear(8, 1))
    settings = {"worker_init_fn": seed_worker, "persistent_workers": persistent}
    train = DataLoader(Noisy(14), 2, shuffle=True, num_workers=2, drop_last=True, **settings)
    val = DataLoader(Noisy(6), 3, num_workers=1, **settings)
    return model, torch.optim.SGD(model.parameters(), lr=0.01), train, val


def train_by_hand(persistent):
    """Train as everybody does; return the losses of training and of validation."""
    model, optimizer, train, val = make_parts(persistent)
    seed_all(5)
    losses = []
    for _ in range(EPOCHS):
        model.train()
        for inputs, targets in train:
            loss = torch.nn.functional.mse_loss(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            for inputs, targets in val:
                losses.append(torch.nn.functional.mse_loss(model(inputs), targets).item())
    return losses


class Cut(Exception):
    pass


class Follow(Hook):
    """Notes each loss under its iteration and cuts the run off after one, or kills it."""

    def __init__(self, losses, cut=None, kill=False):
        self.losses, self.cut, self.kill = losses, cut, kill

    def after_loss(self, run):
        self.losses.setdefault((run.progress.iter, run.phase), []).append(run.loss.item())

    def before_train_iter(self, run):
        self.losses.pop((run.progress.iter, "train"), None)

    def before_val(self, run):
        self.losses.pop((run.progress.iter, "val"), None)

    def after_backward(self, run):
        if run.progress.iter == self.cut:
            if self.kill:
                signal.raise_signal(signal.SIGKILL)
            raise Cut


def make_trainer(run_dir, persistent, follow):
    model, optimizer, train, val = make_parts(persistent)
    return Trainer(
        model,
        train_data=train,
        val_data=val,
        loss=torch.nn.functional.mse_loss,
        optimizer=optimizer,
        max_epochs=EPOCHS,
        seed=5,
        data={"seed_samples": "workers"},
        hooks=[SaveCheckpoint(every="1 iter", keep=2), follow],
        default_hooks=False,
        run_dir=run_dir,
        resume="auto",
    )


def listed(losses):
    """List losses in the order of the loop: those of a validation come after its iteration."""
    ordered = sorted(losses, key=lambda at: (at[0] - (at[1] == "val"), at[1]))
    return [loss for at in ordered for loss in losses[at]]


@pytest.mark.slow
@pytest.mark.parametrize("persistent", [False, True], ids=["each pass", "persistent"])
def test_losses_are_those_of_a_plain_loop_also_after_cuts(tmp_path, persistent):
    expected = train_by_hand(persistent)
    straight = {}
    make_trainer(tmp_path / "straight", persistent, Follow(straight)).train()
    assert listed(straight) == expected
    losses = {}
    # In the second iteration, at an end, at a beginning, twice in an epoch, in the last iteration.
    for cut in (1, 6, 7, 9, 12, 20):
        with pytest.raises(Cut):
            make_trainer(tmp_path / "cut", persistent, Follow(losses, cut)).train()
    make_trainer(tmp_path / "cut", persistent, Follow(losses)).train()
    assert listed(losses) == expected


@pytest.mark.slow
def test_a_killed_process_changes_nothing(tmp_path):
    def train():
        make_trainer(tmp_path / "r", True, Follow({}, cut=10, kill=True)).train()

    killed = multiprocessing.get_context("fork").Process(target=train)
    killed.start()
    killed.join()
    assert killed.exitcode == -signal.SIGKILL
    losses = {}
    make_trainer(tmp_path / "r", True, Follow(losses)).train()
    rest = listed(losses)
    assert len(rest) > 12
    assert rest == train_by_hand(True)[-len(rest) :]
