"""Arguments, calls and settings that a Trainer does not have."""

import inspect

import pytest
import torch
from tests.tiny import make_data, make_model, make_trainer
from torch import nn

from hookloop import Trainer
from hookloop.errors import ArgumentError


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("epochs", "Did you mean 'max_epochs'"),
        ("callbacks", "Did you mean 'hooks'"),
        ("criterion", "Did you mean 'loss'"),
        ("train_loader", "Did you mean 'train_data'"),
        ("learning_rate", "in a config: optimizer.lr"),
        ("batch_size", "belongs to the DataLoader"),
        ("logger", "writers are hooks"),
        ("patience", "StopOnPlateau"),
        ("max_epoch", "Did you mean 'max_epochs'"),
    ],
)
def test_an_argument_of_others_is_translated(name, message):
    with pytest.raises(ArgumentError, match=message):
        make_trainer(**{name: 3})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda trainer: trainer.train(5), "takes no argument by position, not 1. Name .* max_epo"),
        (
            lambda trainer: trainer.train(epochs=5),
            "train has no argument 'epochs'. Did you mean 'm",
        ),
        (lambda trainer: trainer.validate(make_data()), "takes no argument by position"),
        (lambda trainer: setattr(trainer, "epochs", 5), r"trainer.train\(max_epochs=...\)"),
    ],
)
def test_calls_of_a_trainer_are_checked(call, message):
    with pytest.raises(ArgumentError, match=message):
        call(make_trainer())


def test_a_trainer_without_a_model_is_rejected():
    with pytest.raises(ArgumentError, match="needs a model"):
        Trainer(max_epochs=3)
    with pytest.raises(ArgumentError, match="'model'.*2"):
        Trainer(nn.Linear(1, 1), make_data())


@pytest.mark.parametrize("name", ["max_epochs", "max_epoch", "model", "hooks", "run_dir"])
def test_a_setting_that_would_come_too_late_is_rejected(name):
    trainer = make_trainer()
    with pytest.raises(ArgumentError, match="cannot be set.*would have no effect"):
        setattr(trainer, name, 6)
    trainer.notes = "of the user's own"


def test_a_trainer_needs_keywords():
    with pytest.raises(TypeError):
        Trainer(make_model(), make_data())  # type: ignore[misc]


@pytest.mark.parametrize("name", ["fit", "evaluate", "trian"])
def test_a_method_of_others_names_ours(name):
    with pytest.raises(AttributeError, match="Did you mean|It is"):
        getattr(make_trainer(), name)


def test_an_attribute_that_nobody_knows_is_an_ordinary_error():
    assert not hasattr(make_trainer(), "nothing_like_it")


def test_what_a_trainer_has_can_be_set_in_a_subclass_of_ones_own():
    class Mine(Trainer):
        margin = 1

        def train(self, **limits):
            self.margin = 2
            return super().train(**limits)

    model = make_model()
    trainer = Mine(
        model,
        train_data=make_data(),
        loss=nn.functional.mse_loss,
        max_epochs=1,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        default_hooks=False,
    )
    assert trainer.train().status == "completed" and trainer.margin == 2
    with pytest.raises(ArgumentError, match="'epoch'"):
        make_trainer().train(epoch=3)


def test_the_methods_keep_their_names_and_signatures():
    assert Trainer.train.__name__ == "train" and "max_epochs" in str(
        inspect.signature(Trainer.train)
    )
    assert next(iter(inspect.signature(Trainer).parameters)) == "model"
