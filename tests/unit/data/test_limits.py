"""``limit=`` and ``overfit=``: how much is read, and that a resume is exact all the same."""

import itertools
import logging

import pytest
import torch
from tests.tiny import assert_same_bits, make_classes, make_classifier, make_data, record
from torch.utils.data import DataLoader, Dataset, IterableDataset

from hookloop import Data
from hookloop.errors import ArgumentError, DataError
from hookloop.hooks import SaveCheckpoint
from hookloop.testing import tiny_trainer
from hookloop.trainer.inputs import expected_progress


class Numbers(Dataset):
    """Samples that draw a random number, as augmentation does."""

    def __len__(self):
        return 40

    def __getitem__(self, index):
        return torch.full((4,), float(index)) / 40 + torch.rand(4) / 10, index % 3


class Stream(IterableDataset):
    def __iter__(self):
        generator = torch.Generator().manual_seed(0)
        while True:
            yield torch.randn(4, generator=generator), 1


class Ones:
    """Batches without a length, read again from the start in each epoch."""

    def __iter__(self):
        return ((torch.ones(2, 4), torch.ones(2, dtype=torch.int64)) for _ in itertools.count())


def seen_batches(trainer, *, points=("before_train_iter", "before_val_iter", "before_test_iter")):
    """Train and test; return the first inputs of each batch, by phase."""
    hook, calls = record(points, lambda run: (run.phase, run.batch[0][0, 0].item()))
    trainer._planner.hooks.append(hook)
    trainer.train()
    if trainer.run._internals.test_data:
        trainer.test()
    phases = [note[0] for _, note in calls]
    return {phase: phases.count(phase) for phase in phases}, [note[1] for _, note in calls]


def test_each_phase_reads_so_many_batches(tmp_path):
    trainer = make_classifier(
        train_data=make_classes(40, 4),
        val_data={"a": make_classes(40, 4), "b": make_classes(4, 4)},
        data={"limit": {"train": 3, "val": 2, "test": 1}},
        max_epochs=2,
        run_dir=tmp_path,
    )
    assert trainer.run.progress.epoch_iters == 3
    assert trainer.run.progress.total_iters == 6
    counts, _ = seen_batches(trainer)
    assert counts == {"train": 6, "val": 6, "test": 1}
    assert trainer.run.progress.epoch == 2


def test_iterations_are_limited_not_microbatches():
    trainer = make_classifier(
        train_data=make_classes(40, 4), accumulate=2, data={"limit": {"train": 3}}
    )
    assert trainer.run.progress.epoch_iters == 3
    trainer.train()
    assert trainer.run.progress.iter == 3


def test_data_that_is_shorter_than_its_limit_is_read_to_its_end():
    trainer = make_classifier(data={"limit": {"train": 100, "val": 100}}, max_epochs=2)
    assert trainer.run.progress.epoch_iters == 3
    trainer.train()
    assert (trainer.run.progress.iter, trainer.run.progress.epoch) == (6, 2)


def test_an_epoch_of_fixed_size_is_shortened():
    trainer = make_classifier(data={"epoch_iters": 5, "limit": {"train": 2}}, max_epochs=3)
    assert trainer.run.progress.epoch_iters == 2
    trainer.train()
    assert trainer.run.progress.iter == 6


@pytest.mark.parametrize("data", [DataLoader(Stream(), batch_size=2), Ones()])
def test_an_endless_stream_gets_epochs(data):
    trainer = make_classifier(train_data=data, data={"limit": {"train": 3}}, max_epochs=2)
    assert trainer.run.progress.total_iters == 6
    trainer.train()
    assert trainer.run.progress.epoch == 2


def test_a_generator_is_read_up_to_the_limit_and_no_further():
    batches = iter([(torch.ones(2, 4), torch.ones(2, dtype=torch.int64))] * 5)
    make_classifier(train_data=batches, data={"limit": {"train": 2}}, max_epochs=1).train()
    assert len(list(batches)) == 3


@pytest.mark.parametrize("options", [{"shuffle": True}, {"shuffle": True, "batch_size": 5}])
def test_each_epoch_reads_the_first_of_its_own_order(options, tmp_path):
    orders = []
    for limit in (None, {"train": 2}):
        loader = make_data(20, **options)
        trainer = tiny_trainer(train_data=loader, data={"limit": limit}, seed=1, loss=first_class)
        orders.append(seen_batches(trainer, points=["before_train_iter"])[1])
    per_epoch = len(orders[0]) // 2
    assert orders[1][:2] == orders[0][:2]
    assert orders[1][2:] != orders[0][2 : 2 + per_epoch]  # Another order in the second epoch.
    assert len(orders[1]) == 4


def first_class(output, targets):
    return output[:, 0].square().mean() + 0 * targets.sum()


class StopHere(SaveCheckpoint):
    """Ends the training in the middle, with a checkpoint."""

    def __init__(self, at):
        super().__init__(1, keep=None)
        self.at = at

    def after_train_iter(self, run):
        super().after_train_iter(run)
        if run.progress.iter == self.at:
            run.stop("the test")


LOADERS = {
    "plain": lambda: DataLoader(Numbers(), batch_size=4, shuffle=True),
    "workers": lambda: DataLoader(Numbers(), batch_size=4, shuffle=True, num_workers=2),
    "persistent": lambda: DataLoader(
        Numbers(), batch_size=4, shuffle=True, num_workers=1, persistent_workers=True
    ),
    "list": lambda: [(torch.full((2, 4), n / 9), torch.tensor([0, n % 3])) for n in range(9)],
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "at"),
    [("plain", 3), ("plain", 4), ("plain", 7), ("list", 4), ("workers", 4), ("persistent", 4)],
)
def test_a_resume_is_exact(kind, at, tmp_path):
    options = {"data": {"limit": {"train": 3, "val": 1}}, "max_epochs": 3}

    def make(*hooks, **more):
        return tiny_trainer(*hooks, train_data=LOADERS[kind](), **options, **more)

    whole = make()
    whole.train()
    make(StopHere(at), run_dir=tmp_path).train()
    resumed = make(SaveCheckpoint(1), run_dir=tmp_path, resume=True)
    resumed.train()
    assert resumed.run.progress.iter == 9
    assert_same_bits(resumed.run.model, whole.run.model)


def test_a_limit_that_has_changed_is_reported(tmp_path, caplog):
    make_classifier(hooks=[StopHere(2)], run_dir=tmp_path, data={"limit": {"train": 3}}).train()
    with caplog.at_level(logging.WARNING, "hookloop"):
        other = make_classifier(
            run_dir=tmp_path, resume=True, data={"limit": {"train": 2}}, max_epochs=2
        )
        other.train()
    assert "limit: 3 -> 2" in caplog.text
    assert other.run.progress.iter == 4


def test_a_loader_that_keeps_its_own_position_is_named_as_not_exact():
    class Own(list):
        def state_dict(self):
            return {}

        def load_state_dict(self, state):
            pass

    trainer = make_classifier(train_data=Own(make_classes()), data={"limit": {"train": 2}})
    assert "limit= ends its passes early" in trainer.run.train_data.inexact


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ({"trian": 3}, "there is no phase 'trian'. Did you mean 'train'?"),
        ({"train": 0}, r"limit\['train'\]=0: it must be a whole number, at least 1"),
        ({"val": 0.5}, r"limit\['val'\]=0.5: it must be a whole number"),
        (100, "limit=100: it must map phases to numbers"),
    ],
)
def test_other_limits_are_rejected(limit, message):
    with pytest.raises(DataError, match=message):
        make_classifier(data={"limit": limit})


# --- overfit -------------------------------------------------------------------------------------


def test_the_same_batches_are_read_in_every_epoch_and_in_the_validation(tmp_path, caplog):
    trainer = tiny_trainer(
        train_data=make_data(40, shuffle=True), loss=first_class, max_epochs=3, run_dir=tmp_path,
        data={"overfit": 2, "test": None}, metrics={},
    )  # fmt: skip
    assert trainer.run.progress.total_iters == 6
    with caplog.at_level(logging.WARNING, "hookloop"):
        counts, seen = seen_batches(trainer)
    assert counts == {"train": 6, "val": 6}
    assert len(set(seen)) == 2
    assert seen == seen[:2] * 6
    assert "overfit=2: the training and the validation read the same 2 batches" in caplog.text


def test_every_validation_stream_is_the_training_data():
    trainer = make_classifier(data={"overfit": 1}, val_data={"a": [1], "b": [2]})
    assert list(trainer.run.val_data) == ["a", "b"]
    trainer.train()
    assert trainer.run.metrics.latest("val/a/loss") == trainer.run.metrics.latest("val/b/loss")


def test_a_generator_can_be_read_in_every_epoch():
    batches = iter([(torch.ones(2, 4), torch.ones(2, dtype=torch.int64))] * 5)
    trainer = make_classifier(train_data=batches, data={"overfit": 2}, max_epochs=3)
    trainer.train()
    assert trainer.run.progress.iter == 6
    assert len(list(batches)) == 3


def test_a_resume_on_the_same_batches_is_exact(tmp_path):
    def make(*hooks, **more):
        return tiny_trainer(
            *hooks, train_data=LOADERS["plain"](), data={"overfit": 2}, max_epochs=3, **more
        )

    whole = make()
    whole.train()
    make(StopHere(3), run_dir=tmp_path).train()
    resumed = make(run_dir=tmp_path, resume=True)
    resumed.train()
    assert_same_bits(resumed.run.model, whole.run.model)


@pytest.mark.parametrize("count", [0, -1, 1.5, True])
def test_other_numbers_of_batches_are_rejected(count):
    with pytest.raises(ArgumentError, match="overfit=.* must be"):
        make_classifier(data={"overfit": count})


@pytest.mark.parametrize(
    ("arguments", "total"),
    [
        ({"max_epochs": 3}, 30),
        ({"max_epochs": 3, "data": {"limit": {"train": 4}}}, 12),
        ({"max_epochs": 3, "data": Data(limit={"train": 4}), "accumulate": 2}, 12),
        ({"max_epochs": 3, "data": {"limit": {"train": 4}, "epoch_iters": 2}}, 6),
        ({"max_epochs": 3, "data": {"overfit": 2}}, 6),
        ({"max_epochs": 3, "data": {"overfit": 20}}, 30),
        ({"max_iters": 7, "data": {"overfit": 2}}, 7),
    ],
)
def test_the_length_is_known_before_the_trainer_is_made(arguments, total):
    assert expected_progress(arguments, [0] * 10).total_iters == total
