"""The state of MMEngine's hooks, which MMEngine itself does not save."""

import pytest
import torch
from mmengine.hooks import EarlyStoppingHook, Hook
from tests.downstream.graft import toy

from hookloop import dialects
from hookloop_mmengine.graft.hooks import GraftedHook


class Counting(Hook):
    def __init__(self, interval=1):
        self.interval = interval
        self.count = 0
        self.where = None

    def before_train(self, runner):
        self.where = runner.work_dir

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.count += self.interval


def test_counters_are_restored_and_new_settings_obeyed(tmp_path):
    with dialects.graft("mmengine"):
        toy.make_runner(tmp_path, Counting(), length=2).train()
        hook = Counting(interval=100)
        toy.make_runner(tmp_path, hook, length=3, resume=True).train()
    assert hook.count == 12 + 6 * 100
    assert hook.interval == 100


def test_an_early_stop_counts_on_after_a_resume(tmp_path):
    def stopping():
        return EarlyStoppingHook("points/accuracy", rule="greater", min_delta=2.0, patience=3)

    with dialects.graft("mmengine"):
        whole = toy.make_runner(tmp_path / "whole", stopping(), length=9)
        whole.train()
        toy.make_runner(tmp_path / "cut", stopping(), length=2).train()
        resumed = toy.make_runner(tmp_path / "cut", stopping(), length=9, resume=True)
        resumed.train()
    assert whole.epoch == resumed.epoch == 4


class OnlyGeneric(Hook):
    def _after_iter(self, runner, batch_idx, data_batch=None, outputs=None, mode="train"):
        """Be called in all modes."""


class Training:
    is_iter_based = False
    runner = None


def test_only_methods_that_do_something_are_called():
    hook = GraftedHook(OnlyGeneric(), Training())
    assert "after_train_iter" in vars(hook)
    assert "before_train_iter" not in vars(hook)


class SwitchData(Hook):
    """Sets other data once, and restarts persistent workers, as mmdet's PipelineSwitchHook."""

    def __init__(self):
        self.has_switched = False
        self.seen = []

    def before_train_epoch(self, runner):
        loader = runner.train_dataloader
        if runner.epoch >= 1 and not self.has_switched:
            loader.dataset.shift = 10.0
            loader._DataLoader__initialized = False
            loader._iterator = None
            self.has_switched = True

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        self.seen.append(float(torch.stack(data_batch["inputs"]).mean()) > 5)


class Shifted(toy.Points):
    shift = 0.0

    def __getitem__(self, index):
        sample = super().__getitem__(index)
        return {**sample, "inputs": sample["inputs"] + self.shift}


class Fail(Hook):
    def __init__(self, at):
        self.at = at

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        if runner.iter == self.at:
            raise RuntimeError("cut off")


@pytest.mark.slow
@pytest.mark.parametrize("cut", [1, 2])  # At the switch, and after it.
def test_a_switch_is_made_again_after_a_resume_which_is_exact(cut, tmp_path):
    def make(directory, *hooks, **options):
        data = {"dataset": Shifted(), "workers": 2}
        return toy.make_runner(tmp_path / directory, *hooks, train=data, **options)

    hook, again = SwitchData(), SwitchData()
    with dialects.graft("mmengine"):
        whole = make("whole", hook)
        whole.train()
        with pytest.raises(RuntimeError, match="cut off"):
            make("cut", SwitchData(), Fail(6 * cut + 1)).train()
        resumed = make("cut", again, resume=True)
        resumed.train()
    assert hook.seen == [False] * 6 + [True] * 12
    assert again.seen == hook.seen
    end, expected = resumed.model.state_dict(), whole.model.state_dict()
    assert all(torch.equal(end[name], expected[name]) for name in expected)
