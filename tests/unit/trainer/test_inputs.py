"""What the user brought: checked before training, and brought to one form."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.tiny import make_data, make_model, make_trainer

from hookloop import Hook, HookloopError
from hookloop.errors import CheckpointError, DataError, HookError, ModelError
from hookloop.hooks import StepSchedules, StopAfter, StopOnNaN, StopOnPlateau


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"train_data": []}, DataError, "train_data is empty"),
        ({"val_data": {"a": []}}, DataError, r"val_data\['a'\] is empty"),
        ({"train_data": 3}, DataError, "must be an iterable"),
        ({"train_data": iter([1]), "max_epochs": 2}, DataError, "read only once"),
        ({"optimizer": None}, ModelError, "no optimizer"),
        ({"max_epochs": None}, ModelError, "would never end"),
        ({"max_epochs": 0}, ModelError, "max_epochs must be at least 1"),
        ({"accumulate": 0}, ModelError, "accumulate must be at least 1"),
        ({"precision": "fp8"}, ModelError, "write fp32, bf16 or fp16"),
        ({"device": "warp"}, HookloopError, "device='warp'"),
        ({"val_every": "sometimes"}, HookloopError, "no schedule"),
        ({"step": lambda run, batch: None, "loss": lambda o, t: o}, ModelError, "both given"),
        ({"step": {"a": lambda run, batch: None}}, ModelError, "step= names a"),
        ({"resume": True}, CheckpointError, "needs run_dir"),
        ({"load_from": "nowhere.pth"}, CheckpointError, "nowhere.pth"),
    ],
)
def test_what_cannot_be_trained_is_rejected_before_training(options, kind, message):
    with pytest.raises(kind, match=message):
        make_trainer(**options).check()


def test_the_default_hooks_do_not_pass_for_an_end():
    with pytest.raises(ModelError, match="would never end.*StopAfter.*ends_training = True"):
        make_trainer(max_epochs=None, default_hooks=None, hooks=[StopOnNaN()]).check()


def test_a_hook_that_ends_the_training_is_a_limit():
    class Enough(Hook):
        ends_training = True

        def after_train_iter(self, run):
            run.stop("enough")

    for hook in (Enough(), StopAfter(iterations=1)):
        assert make_trainer(max_epochs=None, hooks=[hook]).train().status == "stopped"
    make_trainer(max_epochs=None, hooks=[StopOnPlateau("val/loss")], val_data=make_data()).check()


def test_a_loop_of_ones_own_may_end_by_itself():
    trainer = make_trainer(max_epochs=None)
    with trainer.loop() as batches:
        for _ in batches:
            break
    assert trainer.run.progress.iter == 1


def test_a_schedule_of_another_optimizer_is_rejected():
    model = make_model()
    ours, other = (torch.optim.SGD(model.parameters(), lr=0.1) for _ in range(2))
    schedule = torch.optim.lr_scheduler.ExponentialLR(other, 0.5)
    trainer = make_trainer(model=model, optimizer=ours, schedule=schedule, hooks=[StepSchedules()])
    with pytest.raises(ModelError, match="drives an optimizer that is not in this run"):
        trainer.check()


def test_a_schedule_that_nobody_steps_is_rejected():
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    with pytest.raises(HookError, match="no hook steps it"):
        make_trainer(model=model, optimizer=optimizer, schedule=schedule).check()


def test_a_training_that_has_nothing_left_to_do_is_rejected():
    trainer = make_trainer(max_epochs=2)
    trainer.train()
    for again in ({}, {"max_epochs": 2}, {"max_epochs": 1}):
        with pytest.raises(ModelError, match=r"nothing left to train: train\(max_epochs=...\)"):
            trainer.train(**again)
    with pytest.raises(ModelError, match="max_epochs='3': it must be a whole number"):
        trainer.train(max_epochs="3")
    assert trainer.run.progress.max_epochs == 2
    trainer.train(max_iters=7, max_epochs=9)
    with pytest.raises(ModelError, match="max_iters=7 is reached"):
        trainer.train()


def test_a_model_without_trainable_parameters_is_rejected():
    model = make_model()
    for parameter in model.parameters():
        parameter.requires_grad = False
    with pytest.raises(ModelError, match="no trainable parameters"):
        make_trainer(model=model)


def test_an_optimizer_of_another_model_is_rejected():
    other = torch.optim.SGD(make_model().parameters(), lr=0.1)
    with pytest.raises(ModelError, match="holds no trainable parameter of this model"):
        make_trainer(optimizer=other)


def test_drop_last_that_drops_everything_is_explained():
    with pytest.raises(DataError, match="3 samples are fewer than one batch of 4"):
        make_trainer(train_data=make_data(3, drop_last=True))


def test_whole_numbers_of_numpy_are_taken(tmp_path: Path) -> None:
    trainer = make_trainer(
        max_epochs=np.int64(1), seed=np.int64(3), run_dir=tmp_path / "run", default_hooks=None
    )
    assert trainer.train().status == "completed"
    assert trainer.train(max_epochs=np.int32(2)).status == "completed"
    assert (type(trainer.run.seed), type(trainer.run.progress.max_epochs)) == (int, int)
