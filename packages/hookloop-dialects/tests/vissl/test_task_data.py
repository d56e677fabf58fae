"""Loaders and iterators of a task."""

from itertools import islice

import pytest
import torch
from tests.tiny import assert_same_bits, make_data, make_trainer
from tests.vissl.phases import train

from hookloop.errors import HookError
from hookloop_dialects.vissl import ClassyHook, Task


class ReadAgain(ClassyHook):
    """Reads the data of each train phase once more, as precise batch norm does."""

    on_start = on_phase_start = on_step = on_end = ClassyHook._noop
    batches = 3

    def on_phase_end(self, task):
        if task.train:
            task.build_dataloaders_for_current_phase()
            task.create_data_iterators()
            assert len(task.data_iterator) == 3
            self.inputs = [sample["input"] for sample in islice(task.data_iterator, self.batches)]


def shuffled(**options):
    return make_data(shuffle=True, generator=torch.Generator().manual_seed(3), **options)


@pytest.mark.parametrize("batches", [3, 1])
def test_a_pass_of_a_hook_leaves_the_training_as_it_is(tmp_path, batches):
    hook = ReadAgain()
    hook.batches = batches
    plain = train(tmp_path / "plain", train_data=shuffled(), max_epochs=3, seed=1)
    seen = train(tmp_path / "seen", hook, train_data=shuffled(), max_epochs=3, seed=1)
    assert len(hook.inputs) == batches
    assert_same_bits(plain.run.model, seen.run.model)


def test_a_pass_that_a_hook_did_not_end_is_ended(tmp_path):
    class Leave(ClassyHook):
        on_start = on_step = on_phase_end = on_end = ClassyHook._noop

        def on_phase_start(self, task):
            assert not hasattr(task, "data_iterator")
            task.recreate_data_iterator("test")
            next(task.data_iterator)

    trainer = train(tmp_path, Leave(), max_epochs=2)
    (task,) = trainer.run._internals.shared.values()
    assert not hasattr(task, "data_iterator") and not trainer.run.val_data[""]._side_passes


def test_the_iterator_of_the_training_is_not_for_hooks():
    task = Task(make_trainer().run)
    with pytest.raises(HookError, match="create_data_iterators"):
        task.data_iterator  # noqa: B018 - the question itself
    stream = Task(make_trainer(train_data=iter([(1, 2)])).run)
    stream.create_data_iterators()
    with pytest.raises(TypeError, match="stream"):
        len(stream.data_iterator)


def test_sizes_and_loaders_are_those_of_the_run():
    task = Task(make_trainer(val_data=make_data(8)).run)
    assert task.num_phase_samples("TRAIN") == 12 and task.num_phase_samples("test") == 8
    assert task.dataloader is task.dataloaders["train"]
    assert task.config["DATA"]["TRAIN"]["BATCHSIZE_PER_REPLICA"] == 4
    unsized = Task(make_trainer(train_data=[(1, 2)]).run)
    assert unsized.get_batchsize_per_replica() == unsized.get_global_batchsize() == 1
    unsized.run.batch = torch.ones(3, 1), torch.ones(3)
    assert unsized.config.DATA.TRAIN.BATCHSIZE_PER_REPLICA == 3
    with pytest.raises(KeyError, match="no 'BATCHSIZE'"):
        unsized.config["DATA"]["TRAIN"]["BATCHSIZE"]
    given = Task(
        make_trainer(setup={"config": {"DATA": {"TRAIN": {"BATCHSIZE_PER_REPLICA": 9}}}}).run
    )
    assert given.config["DATA"]["TRAIN"]["BATCHSIZE_PER_REPLICA"] == 9
