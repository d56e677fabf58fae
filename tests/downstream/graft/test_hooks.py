"""The state of MMEngine's hooks, which MMEngine itself does not save."""

from mmengine.hooks import EarlyStoppingHook, Hook
from tests.downstream.graft import toy

from hookloop import dialects
from hookloop.dialects.mmengine.graft.hooks import GraftedHook


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
