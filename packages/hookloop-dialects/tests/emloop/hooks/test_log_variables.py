"""The epoch's data in the log."""

import logging

import numpy as np
import pytest

from hookloop_dialects.emloop.hooks import LogVariables


def logged(caplog, data, **options):
    caplog.clear()
    with caplog.at_level(logging.INFO):
        LogVariables(**options).after_epoch(epoch_id=1, epoch_data=data)
    return caplog.messages


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        (0.5, ["\ttrain x: 0.500000"]),
        (np.float32(2), ["\ttrain x: 2.000000"]),
        ({"mean": 1.5}, ["\ttrain x mean: 1.500000"]),
        ({"min": 1, "max": 2.5}, ["\ttrain x:", "\t\tmin: 1.000000", "\t\tmax: 2.500000"]),
        ("fine", ["\ttrain x: fine"]),
        ([1, 2], []),
    ],
)
def test_the_lines_of_a_value(value, lines, caplog):
    assert logged(caplog, {"train": {"x": value}}) == lines


def test_all_variables_of_all_streams_are_logged_unless_some_are_chosen(caplog):
    data = {"train": {"a": 1, "b": 2}, "valid": {"a": 3, "b": 4}}
    assert len(logged(caplog, data)) == 4
    assert logged(caplog, data, variables=["b"]) == ["\ttrain b: 2.000000", "\tvalid b: 4.000000"]


def test_a_missing_variable_is_an_error(caplog):
    with pytest.raises(KeyError, match="the stream 'train' has no 'c' to log. Available: a, b"):
        logged(caplog, {"train": {"a": 1, "b": 2}}, variables=["c"])


def test_what_happens_to_other_values_can_be_chosen(caplog):
    data = {"train": {"x": [1, 2]}}
    assert logged(caplog, data, on_unknown_type="str") == ["\ttrain x: [1, 2]"]
    assert logged(caplog, data, on_unknown_type="warn") == ["'x' of type list cannot be logged."]
    with pytest.raises(TypeError, match="'x' of type list cannot be logged"):
        logged(caplog, data, on_unknown_type="error")
    with pytest.raises(AssertionError, match="explode"):
        LogVariables(on_unknown_type="explode")
