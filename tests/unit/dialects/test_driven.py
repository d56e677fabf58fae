"""A `Trainer` that the runner of another system drives."""

import logging

import pytest
import torch
from tests.tiny import assert_same_bits, make_data, make_model, make_trainer
from torch.nn import functional

from hookloop import CheckpointStore, Every, Save
from hookloop.dialects import ChangedAttributes, Driven, World, note_in_log, place_of
from hookloop.engine.hook import Hook
from hookloop.errors import ModelError
from hookloop.testing import RecordCalls


def drive(*hooks, model=None, world=None, **options):
    model = model or make_model()
    options = {"max_epochs": 2, "run_dir": "run", "default_hooks": False, **options}
    return Driven(
        world=world,
        model=model,
        train_data=make_data(),
        loss=functional.mse_loss,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9),
        hooks=hooks,
        **options,
    )


@pytest.mark.parametrize("world", [None, World()])
def test_it_trains_as_a_trainer_does(world):
    ours, theirs = make_model(), make_model()
    drive(model=ours, world=world).trainer.train()
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.05, momentum=0.9)
    make_trainer(model=theirs, optimizer=optimizer, max_epochs=2).train()
    assert_same_bits(ours, theirs)


def test_a_function_validates():
    calls, metrics = RecordCalls(), []

    class Read(Hook):
        def after_epoch(self, run):
            metrics.append(run.metrics.latest("val/score"))

    driven = drive(calls, Read(), val_data=make_data())
    numbers = iter([{"score": 1.0}, {"score": 2.0}])
    driven.validate_with(lambda: next(numbers))
    driven.trainer.train()
    assert metrics == [1.0, 2.0]
    assert driven.trainer.run.phase == "train"


def test_a_validation_that_is_cut_short_has_no_numbers():
    driven = drive(val_data=make_data(), max_epochs=1)
    driven.validate_with(lambda: None)
    driven.trainer.train()
    assert "val/loss" not in driven.trainer.run.metrics.names()


def test_the_interval_of_validations_may_change():
    seen = []
    driven = drive(val_data=make_data(), max_epochs=4, val_every="1 epochs")

    def validate():
        seen.append(driven.trainer.run.progress.epoch)
        driven.val_every = Every(2, driven.val_every.unit)
        return {}

    driven.validate_with(validate)
    driven.val_begin = 2
    driven.trainer.train()
    assert (seen, driven.val_begin) == ([2, 4], 2)


def test_a_directory_is_used_again_and_its_pointer_is_whole():
    class SaveEach(Hook):
        def after_train_epoch(self, run):
            run.save(Save(f"epoch_{run.progress.epoch}.pth"))

    for _ in range(2):
        driven = drive(SaveEach(), max_epochs=1)
        driven.use_directory()
        driven.point_with_whole_paths()
        driven.trainer.train()
        driven.wait_for_saves()
    folder = driven.trainer.run.dir.absolute()
    assert (folder / "last_checkpoint").read_text() == str(folder / "epoch_1.pth")
    assert CheckpointStore(folder).newest()[0] == "epoch_1.pth"


def test_a_single_process_has_no_place_in_a_batch():
    class Ask(Hook):
        def after_train_iter(self, run):
            place_of(run)

    with pytest.raises(ModelError, match="not shared among the ranks"):
        drive(Ask()).trainer.train()


def test_lines_go_to_the_log_of_the_run():
    class Note(Hook):
        def after_train(self, run):
            note_in_log("a line of another logger")

    driven = drive(Note(), max_epochs=1)
    driven.trainer.train()
    assert "a line of another logger" in (driven.trainer.run.dir / "run.log").read_text()
    logging.getLogger("hookloop").info("outside of a run")
    note_in_log("outside of a run")  # Nobody reads it.


class Foreign:
    def __init__(self):
        self.interval, self.seen, self.done = 5, [], False


def test_only_changed_attributes_are_kept():
    hook = Foreign()
    changed = ChangedAttributes(hook, lambda name, value: name != "private")
    changed.settle()
    assert changed.state_dict() == {}
    hook.seen.append(3)
    hook.done = True  # A flag says that something was done in this process.
    state = changed.state_dict()
    assert set(state) == {"seen"}
    other = Foreign()
    other.interval = 9  # A new setting is obeyed.
    restored = ChangedAttributes(other, lambda name, value: True)
    restored.load_state_dict(state)
    restored.settle()
    assert (other.interval, other.seen, other.done) == (9, [3], False)
