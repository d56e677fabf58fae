"""Hooks that switch the pipeline of the training data, in the style of detection projects."""

import pytest
import torch
from tests.tiny import make_trainer, weights
from torch.utils.data import DataLoader, Dataset

from hookloop.hooks import SaveCheckpoint
from hookloop_mmengine.hooks import Hook

PERSISTENT = {"num_workers": 1, "persistent_workers": True}


def soft(sample):
    return sample + torch.rand(4)


def hard(sample):
    return sample * 100 + torch.rand(4)


class Piped(Dataset):
    """Samples that go through a pipeline which draws."""

    def __init__(self):
        self.pipeline = soft

    def __len__(self):
        return 6

    def __getitem__(self, index):
        return self.pipeline(torch.full((4,), 0.1 * index)), torch.ones(1)


class SwitchPipeline(Hook):
    """Sets another pipeline once, and restarts persistent workers."""

    def __init__(self, epoch=1):
        self.epoch, self.has_switched, self.restarts = epoch, False, False

    def before_train_epoch(self, runner):
        loader = runner.train_loop.dataloader
        if runner.epoch >= self.epoch and not self.has_switched:
            loader.dataset.pipeline = hard
            if getattr(loader, "persistent_workers", False):
                loader._DataLoader__initialized = False
                loader._iterator = None
                self.restarts = True
            self.has_switched = True
        elif self.restarts:
            loader._DataLoader__initialized = True


class Sizes(Hook):
    def __init__(self):
        self.seen = []

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        values = data_batch["inputs"] if isinstance(data_batch, dict) else data_batch[0]
        self.seen.append(float(max(value.max() for value in values)) > 5)


def train(**options):
    torch.manual_seed(1)
    sizes = Sizes()
    loader = DataLoader(Piped(), batch_size=2, shuffle=True, **options.pop("loader"))
    trainer = make_trainer(
        train_data=loader, hooks=[SwitchPipeline(), sizes, SaveCheckpoint(every=1, keep=None)],
        max_epochs=3, **options,
    )  # fmt: skip
    trainer.train()
    return sizes.seen, weights(trainer.run.model)


@pytest.mark.slow
@pytest.mark.parametrize("loader", [{}, {"num_workers": 1}, PERSISTENT], ids=str)
def test_the_switch_arrives_with_its_epoch_and_a_resume_is_exact(loader):
    seen, whole = train(loader=loader, run_dir="whole")
    assert seen == [False] * 3 + [True] * 6
    for number in (2, 3, 4, 8):  # Before the switch, at it, after it, in a later pass.
        resumed, result = train(
            loader=loader, run_dir=f"again_{number}", resume=f"whole/iter_{number}.pth"
        )
        assert resumed == seen[number:]
        assert all(torch.equal(result[name], value) for name, value in whole.items())


class Labelled(Piped):
    def __getitem__(self, index):
        return {"inputs": super().__getitem__(index)[0][:1]}


@pytest.mark.slow
def test_the_switch_arrives_in_a_runner(run):
    sizes = Sizes()
    loader = {"dataset": Labelled(), "batch_size": 3, **PERSISTENT}
    run(SwitchPipeline(), sizes, train_dataloader=loader)
    assert sizes.seen == [False] * 2 + [True] * 4
