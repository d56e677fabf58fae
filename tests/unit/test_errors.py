"""Errors carry what is wrong, and which hook or argument causes it."""

import pytest

from hookloop import errors
from hookloop.errors import (
    ArgumentError,
    ConfigError,
    DataError,
    HookloopError,
    IntervalError,
    LinkError,
    ModelError,
    Problem,
    caused_by,
    nearest,
)


def test_an_error_names_its_hook_and_its_argument():
    error = ModelError("no.", "ema", argument="model")
    assert (str(error), error.hook, error.argument) == ("no.", "ema", "model")
    assert (DataError("no.").hook, DataError("no.").argument) == (None, None)


@pytest.mark.parametrize(
    ("kind", "base"),
    [(LinkError, OSError), (ArgumentError, TypeError), (IntervalError, ValueError)],
)
def test_some_errors_are_also_those_of_python(kind, base):
    with pytest.raises(base, match="no."):
        raise kind("no.", argument="every")


def test_every_error_has_the_one_base_class_and_is_in_the_overview():
    kinds = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type)
        and issubclass(value, Exception)
        and not issubclass(value, Warning)
    }
    assert all(issubclass(getattr(errors, name), HookloopError) for name in kinds)
    assert {line.split()[0] for line in errors.__doc__.splitlines() if "Error" in line} == kinds


def test_a_message_cannot_send_codes_to_a_terminal():
    assert str(HookloopError("a\x1b[31mb")) == "a\\x1b[31mb"
    assert str(Problem("\x07", "a.yaml:1")) == "a.yaml:1: \\x07"


def test_a_config_error_has_a_line_for_each_problem():
    problems = [Problem("one.", "a.yaml:3"), Problem("two.")]
    error = ConfigError(problems)
    assert error.problems == tuple(problems)
    assert str(error) == "a.yaml:3: one.\ntwo."


def test_errors_raised_inside_are_caused_by_the_argument():
    with pytest.raises(DataError) as caught, caused_by("train_data"):
        raise DataError("it is empty.")
    assert caught.value.argument == "train_data"


def test_an_error_that_names_its_argument_keeps_it():
    with pytest.raises(ModelError) as caught, caused_by("optimizer"), caused_by("loss"):
        raise ModelError("no.", argument="model")
    assert caught.value.argument == "model"


def test_errors_of_the_user_s_own_code_are_left_alone():
    with pytest.raises(ValueError, match="mine") as caught, caused_by("train_data"):
        raise ValueError("mine")
    assert not hasattr(caught.value, "argument")


@pytest.mark.parametrize(
    ("name", "options", "found"),
    [
        ("adamw", ["SGD", "AdamW"], " Did you mean 'AdamW'?"),
        ("STEPLR", ["StepLR", "ConstantLR"], " Did you mean 'StepLR'?"),
        ("x", ["StepLR"], ""),
        ("name", [], ""),
    ],
)
def test_the_nearest_name_is_found_whatever_its_case(name, options, found):
    assert nearest(name, options) == found
