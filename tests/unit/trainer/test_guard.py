"""Arguments, calls and settings that a Trainer does not have."""

import pytest
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
    with pytest.raises(ArgumentError, match="only 'model' by position, not 2. Name the others: tr"):
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
