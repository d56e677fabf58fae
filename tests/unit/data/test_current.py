"""Data that a hook replaces during a run, and replaces again after a resume."""

import pytest
import torch
from tests.unit.trainer.test_resume import Augmented, Cut, assert_same_end, make
from torch.utils.data import DataLoader

from hookloop.data.stream import Stream
from hookloop.engine.hook import Hook
from hookloop.errors import DataError


class Grow(Hook):
    """Trains on larger batches from the second epoch on."""

    takes_part_in_training = True

    def __init__(self, workers=0):
        self.is_done, self.workers = False, workers

    def before_train_epoch(self, run):
        if run.progress.epoch >= 1 and not self.is_done:
            self.is_done = True
            run.train_data.replace(
                DataLoader(Augmented(), batch_size=6, shuffle=True, num_workers=self.workers)
            )


class NewEachEpoch(Hook):
    """Makes a loader with a generator of its own for each epoch."""

    takes_part_in_training = True

    def before_train_epoch(self, run):
        generator = torch.Generator().manual_seed(run.progress.epoch)
        size = 3 + run.progress.epoch
        run.train_data.replace(
            DataLoader(Augmented(), batch_size=size, shuffle=True, generator=generator)
        )


class WithinEpoch(Hook):
    """Replaces the data in the middle of an epoch."""

    takes_part_in_training = True

    def __init__(self, now):
        self.is_done, self.now = False, now

    def before_train(self, run):
        self.after_train_iter(run)

    def after_train_iter(self, run):
        if run.progress.iter >= 5 and not self.is_done:
            self.is_done = True
            run.train_data.replace(
                DataLoader(Augmented(), batch_size=5, shuffle=True), now=self.now
            )


def ends_the_same(tmp_path, hook, *cuts, **options):
    options = {"max_epochs": 2} | options
    whole = make(tmp_path / "whole", hooks=[hook()], every="1 iter", **options)
    whole.train()
    for cut in cuts:
        run_dir = tmp_path / str(cut)
        with pytest.raises(Cut):
            make(run_dir, hooks=[hook()], every="1 iter", cut=cut, **options).train()
        resumed = make(run_dir, hooks=[hook()], every="1 iter", resume=True, **options)
        resumed.train()
        assert_same_end(resumed, whole)


# An epoch has 8 iterations at first.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("hook", "cuts", "options"),
    [
        (Grow, (5, 8, 10), {}),
        (Grow, (4, 5), {"accumulate": 2}),
        (NewEachEpoch, (8, 10), {}),
        (lambda: WithinEpoch(now=False), (5, 7, 9), {}),
        (lambda: WithinEpoch(now=True), (5, 6, 9), {}),
        (lambda: WithinEpoch(now=False), (5, 6), {"data": {"epoch_iters": 4}}),
    ],
)
def test_a_cut_before_or_after_the_replacement_changes_nothing(tmp_path, hook, cuts, options):
    ends_the_same(tmp_path, hook, *cuts, **options)


@pytest.mark.slow
def test_the_same_with_workers(tmp_path):
    ends_the_same(tmp_path, lambda: Grow(workers=1), 5, 10, workers=1)


class Forgetful(Grow):
    def before_train_epoch(self, run):
        if run.progress.epoch == 1:
            super().before_train_epoch(run)


def test_a_hook_that_does_not_replace_again_fails_the_resume(tmp_path):
    with pytest.raises(Cut):
        make(tmp_path, hooks=[Forgetful()], every="1 iter", cut=14).train()
    with pytest.raises(DataError, match="was replaced by a hook before the checkpoint"):
        make(tmp_path, hooks=[Forgetful()], resume=True).train()


class OnlyOnce(WithinEpoch):
    def after_train_iter(self, run):
        if run.progress.iter == 5:
            super().after_train_iter(run)


def test_so_does_one_that_had_asked_for_the_next_pass(tmp_path):
    hook = OnlyOnce(now=False)
    with pytest.raises(Cut):
        make(tmp_path, hooks=[hook], every="1 iter", cut=6).train()
    with pytest.raises(DataError, match="after the pass that has ended now"):
        make(tmp_path, hooks=[OnlyOnce(now=False)], resume=True).train()


def test_a_run_that_ends_before_the_data_is_there_keeps_its_state():
    source = Stream([1, 2, 3], "train_data")
    source.replace([4, 5, 6, 7])
    groups = source.groups(1)
    next(groups), next(groups)
    state = source.state_dict()
    waiting = Stream([1, 2, 3], "train_data")
    waiting.load_state_dict(state)
    assert waiting.state_dict() == state
    waiting.replace([4, 5, 6, 7])
    assert list(waiting.groups(1)) == [[6], [7]]


def test_now_goes_over_with_the_next_batch_and_reads_each_once():
    source = Stream([1, 2, 3], "train_data")
    source.replace([4, 5, 6], now=True)  # Before anything is read.
    groups = source.groups(1)
    read = [next(groups), next(groups)]
    source.replace([7, 8], now=True)
    assert [*read, *groups] == [[4], [5], [7], [8]]


def test_the_next_pass_has_the_other_data():
    source = Stream([1, 2, 3], "train_data")
    groups = source.groups(1)
    next(groups)
    source.replace([7, 8])
    assert source.data == [1, 2, 3]
    assert list(groups) == [[2], [3]]
    assert list(source.groups(1)) == [[7], [8]]


def test_what_is_no_data_is_rejected_at_once():
    source = Stream([1, 2, 3], "train_data")
    next(source.groups(1))
    with pytest.raises(DataError, match="train_data is int"):
        source.replace(3)
