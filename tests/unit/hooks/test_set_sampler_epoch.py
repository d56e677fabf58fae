import torch
from tests.tiny import make_data, make_trainer
from torch.utils.data import DistributedSampler

from hookloop.engine.hook import Hook
from hookloop.hooks import SetSamplerEpoch


class Note(Hook):
    """Notes the inputs of each epoch, in order."""

    def __init__(self):
        self.epochs = []

    def before_train_epoch(self, run):
        self.epochs.append([])

    def before_forward(self, run):
        self.epochs[-1] += run.batch[0][:, 0].tolist()


def shuffled(run_dir, *hooks, max_epochs=3, **options):
    data = make_data(12).dataset
    sampler = DistributedSampler(data, num_replicas=1, rank=0, seed=5)
    note = Note()
    trainer = make_trainer(
        train_data=torch.utils.data.DataLoader(data, batch_size=4, sampler=sampler),
        hooks=[*hooks, note],
        max_epochs=max_epochs,
        run_dir=run_dir,
        **options,
    )
    trainer.train()
    return note.epochs


def expected(epoch):
    """Return the inputs in the order that torch's sampler has in an epoch."""
    data = make_data(12).dataset
    sampler = DistributedSampler(data, num_replicas=1, rank=0, seed=5)
    sampler.set_epoch(epoch)
    return [data[index][0][0].item() for index in sampler]


def test_every_epoch_has_an_order_of_its_own_counted_from_0(tmp_path):
    assert shuffled(tmp_path, SetSamplerEpoch()) == [expected(epoch) for epoch in range(3)]


def test_without_it_all_epochs_have_the_same_order(tmp_path):
    assert shuffled(tmp_path) == [expected(0)] * 3


def test_a_resumed_run_continues_with_the_orders_of_later_epochs(tmp_path):
    checkpoints = {"default_hooks": {"console": None, "sampler": None}}
    shuffled(tmp_path, SetSamplerEpoch(), max_epochs=1, **checkpoints)
    orders = shuffled(tmp_path, SetSamplerEpoch(), resume=True, **checkpoints)
    assert orders == [expected(1), expected(2)]


def test_data_without_a_sampler_is_left_alone(tmp_path):
    batches = list(make_data())
    trainer = make_trainer(train_data=batches, hooks=[SetSamplerEpoch()], run_dir=tmp_path)
    assert trainer.train().status == "completed"


def test_a_run_that_only_evaluates_has_no_sampler_to_set(tmp_path):
    hooks = [SetSamplerEpoch()]
    trainer = make_trainer(train_data=None, val_data=make_data(4), hooks=hooks, run_dir=tmp_path)
    assert trainer.validate()["loss"] > 0
