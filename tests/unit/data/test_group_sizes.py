"""How many microbatches make an iteration, and how many iterations batches make."""

import pytest
import torch
from tests.ranks import on_ranks
from tests.tiny import assert_same_bits, make_data, make_trainer, record, weights

from hookloop.data.group_sizes import GroupSizes
from hookloop.errors import ModelError
from hookloop.hooks import SaveCheckpoint


def simulate(sizes, batches, epochs):
    """Count the iterations of each epoch one by one."""
    total, lengths = 0, []
    for epoch in range(epochs):
        left, length = batches, 0
        while left > 0:
            left -= sizes.at(total + length, epoch)
            length += 1
        total += length
        lengths.append(length)
    return lengths


@pytest.mark.parametrize("batches", [1, 2, 5, 7, 12])
@pytest.mark.parametrize(
    "accumulate",
    [
        1,
        3,
        "auto",
        {0: 1, 4: 2},
        {0: 4, 3: 1, 5: 7},
        {0: 1, "2 epochs": 4},
        {0: 3, "1 epoch": 2, "3 epochs": 1},
        {"0": 1, "4 iters": 2},  # As a written config has it.
    ],
)
def test_the_iterations_are_those_that_are_made(accumulate, batches):
    sizes = GroupSizes(accumulate)
    lengths, done = simulate(sizes, batches, 5), 0
    for epoch, length in enumerate(lengths):
        assert sizes.iters(batches, done, epoch) == length
        done += length
        assert sizes.iters_of_epochs(batches, epoch + 1) == done


@pytest.mark.parametrize(
    ("accumulate", "message"),
    [
        ({}, "the value at the start is missing"),
        ({5: 2}, "the value at the start is missing"),
        ({0: 1, 5: 2, "2 epochs": 3}, "write all in one unit"),
        ({0: 1, "10 min": 2}, "is a time"),
        ({0: 1, "2M tokens": 2}, "after iterations or epochs"),
        ({0: 1, "5 fortnights": 2}, "is not an interval"),
        ({0: 1, 5: 0}, "must be at least 1, not 0 at 5"),
        ({0: 1, 5: 1.5}, "whole number"),
        ({0: 1, "0 epochs": 2}, "given twice"),
        ("often", "'auto'"),
        (True, "whole number"),
    ],
)
def test_what_cannot_be_meant_is_rejected(accumulate, message):
    with pytest.raises(ModelError, match=message) as caught:
        GroupSizes(accumulate)
    assert caught.value.argument == "accumulate"


@pytest.mark.parametrize(
    "options",
    [
        {"accumulate": {0: 1, 4: 2}, "max_epochs": 3},
        {"accumulate": {0: 1, 4: 2}, "max_epochs": 3, "train_data": list(make_data(28))},
        {"accumulate": {0: 2, "1 epoch": 3}, "max_epochs": 3},
        {"accumulate": {0: 1, 4: 3}, "max_iters": 9, "data": {"epoch_iters": 3}},
    ],
)
def test_a_change_takes_effect_at_the_next_iteration_and_the_lengths_are_known(options):
    hook, calls = record(
        ["after_train_iter", "after_train_epoch"],
        lambda run: (run.progress.epoch_iters, run.progress.iter_in_epoch, run.accumulate),
    )
    trainer = make_trainer(**({"train_data": make_data(28)} | options), hooks=[hook])
    total = trainer.run.progress.total_iters
    trainer.train()
    assert trainer.run.progress.iter == total
    sizes = GroupSizes(options["accumulate"])
    epoch, seen = 0, []
    for point, (length, done, accumulate) in calls:
        if point == "after_train_epoch":
            assert done == length  # It was known before the epoch ended.
            epoch += 1
        else:
            assert accumulate == sizes.at(len(seen), epoch)
            seen.append(length)
    assert len(seen) == total


def test_of_data_without_a_length_nothing_is_claimed():
    class Stream:
        def __iter__(self):
            return iter(list(make_data(28)))

    hook, calls = record(["after_train_iter"], lambda run: run.progress.epoch_iters)
    trainer = make_trainer(train_data=Stream(), accumulate={0: 1, 4: 2}, max_epochs=2, hooks=[hook])
    assert trainer.run.progress.total_iters is None
    trainer.train()
    assert trainer.run.progress.iter == 6 + 4
    assert {length for _, length in calls} == {None}


def resumable(directory, limit, accumulate, **options):
    torch.manual_seed(0)
    drops = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Dropout(0.3), torch.nn.Linear(6, 1))
    trainer = make_trainer(
        model=drops, train_data=make_data(30, shuffle=True), accumulate=accumulate, max_epochs=3,
        max_iters=limit, seed=5, hooks=[SaveCheckpoint(every=None)], run_dir=directory, **options,
    )  # fmt: skip
    trainer.train()
    return trainer


@pytest.mark.slow
@pytest.mark.parametrize("accumulate", [{0: 1, 5: 3}, {0: 2, "1 epoch": 3}])
def test_a_resume_before_at_and_after_the_change_is_exact(accumulate, tmp_path):
    whole = resumable(tmp_path / "whole", None, accumulate)
    last = whole.run.progress.iter
    for cut in (4, 5, 7):
        resumable(tmp_path / str(cut), cut, accumulate)
        again = resumable(tmp_path / str(cut), None, accumulate, resume=True)
        assert_same_bits(whole.run.model, again.run.model)
        assert again.run.progress.iter == last == again.run.progress.total_iters


def on_each_rank(directory):
    trainer = make_trainer(
        train_data=make_data(24, 4), accumulate={0: 1, 3: 2}, max_epochs=2, run_dir=directory
    )
    trainer.train()
    return trainer.run.progress.iter, weights(trainer.run.model)


@pytest.mark.slow
def test_ranks_change_together(tmp_path):
    alone = on_each_rank(tmp_path / "alone")
    for iterations, of_rank in on_ranks(on_each_rank, 2, tmp_path / "ranks"):
        assert iterations == alone[0] == 3 + 2 + 3
        assert all(torch.allclose(of_rank[name], one, atol=1e-6) for name, one in alone[1].items())


@pytest.mark.parametrize(
    ("accumulate", "is_reported"), [(4, True), (3, False), ({0: 9, 1: 1}, False)]
)
def test_more_microbatches_than_an_epoch_has_are_reported(accumulate, is_reported, caplog):
    make_trainer(accumulate=accumulate).train()
    assert ["single update" in one for one in caplog.messages] == [True] * is_reported
