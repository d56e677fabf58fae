"""The end of a training in which a variable is NaN."""

import math

import numpy as np
import pytest

from hookloop_dialects.emloop.hooks import StopOnNaN, TrainingTerminated


def check(value, **options):
    StopOnNaN(**options).after_epoch(epoch_data={"train": {"x": value}}, epoch_id=1)


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        np.float32("nan"),
        {"mean": 1.0, "max": math.nan},
        {"a": {"b": [1.0, math.nan]}},
        [1.0, math.nan],
        np.array([[1.0, 2.0], [math.nan, 4.0]]),
    ],
)
def test_nan_in_any_form_ends_the_training(value):
    with pytest.raises(TrainingTerminated, match="'x' of the stream 'train' is NaN"):
        check(value)


@pytest.mark.parametrize("value", [1.0, math.inf, [1, 2], np.ones((2, 2)), "nan", {"a": "text"}])
def test_anything_else_does_not(value):
    check(value)


def test_infinity_counts_on_request():
    with pytest.raises(TrainingTerminated):
        check([1.0, -math.inf], stop_on_inf=True)


def test_what_cannot_be_checked_is_handled_as_requested(caplog):
    check(object())
    assert not caplog.messages
    check(object(), on_unknown_type="warn")
    assert caplog.messages == ["'x' of type object cannot be checked for NaN."]
    with pytest.raises(ValueError, match="'x' of type object"):
        check(object(), on_unknown_type="error")


def test_batches_are_checked_on_request():
    batch = {"x": [math.nan], "y": [1.0]}
    StopOnNaN().after_batch("train", batch)
    StopOnNaN(variables=["y"], after_batch=True).after_batch("train", batch)
    with pytest.raises(TrainingTerminated):
        StopOnNaN(after_batch=True, after_epoch=False).after_batch("train", batch)
    StopOnNaN(after_batch=True, after_epoch=False).after_epoch(epoch_data={"train": batch})


def test_a_missing_variable_is_an_error():
    with pytest.raises(KeyError, match="has no 'z' to check. Available: x"):
        check(1.0, variables=["z"])


def test_it_has_to_check_something():
    with pytest.raises(AssertionError, match="set after_batch or after_epoch"):
        StopOnNaN(after_epoch=False)
    assert not hasattr(StopOnNaN(after_batch=True, after_epoch=False), "reads_epoch_data")
