"""A value that is required by a certain epoch."""

import pytest

from hookloop_dialects.emloop.hooks import Check, TrainingTerminated


def after(epoch, value, **options):
    hook = Check(**({"variable": "f1", "required_min_value": 0.5, "max_epoch": 3} | options))
    hook.after_epoch(epoch_id=epoch, epoch_data={"valid": {"f1": value}, "train": {"f1": 9.0}})


@pytest.mark.parametrize("value", [0.6, {"mean": 0.6, "min": 0.0}])
def test_a_value_that_is_large_enough_ends_the_training(value):
    with pytest.raises(TrainingTerminated, match="valid f1 is 0.6, above 0.5"):
        after(1, value)


@pytest.mark.parametrize("value", [0.5, 0.4])
def test_a_value_that_is_too_small_fails_at_the_last_epoch_only(value):
    after(2, value)
    for epoch in (3, 4):
        with pytest.raises(ValueError, match=f"after epoch {epoch}, but more than 0.5 is required"):
            after(epoch, value)


def test_the_stream_can_be_chosen():
    with pytest.raises(TrainingTerminated, match="train f1"):
        after(1, 0.0, stream="train")


def test_a_value_that_is_not_a_number_is_rejected():
    with pytest.raises(TypeError, match="'f1' is not a single number and has no mean"):
        after(1, [1.0, 2.0])


def test_a_missing_variable_names_those_that_exist():
    with pytest.raises(KeyError, match="no variable 'recall'. Available: f1"):
        after(1, 0.0, variable="recall")
