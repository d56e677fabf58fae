"""The keys of a config fit together, and fit the Trainer."""

import inspect

import pytest

from hookloop import Trainer
from hookloop.config.parts.signature import convert
from hookloop.config.schema import ABOUT, BUILT, KEYS, LEAST, SETTINGS, SHOWN
from hookloop.runs.policy import NOT_COMPARED


def test_each_key_is_of_one_kind() -> None:
    assert len(KEYS) == len(set(KEYS))
    assert set(KEYS) == {*BUILT, *SETTINGS, *ABOUT}


def test_the_lists_of_keys_name_keys() -> None:
    assert set(LEAST) <= set(SETTINGS)
    assert {*SHOWN, *NOT_COMPARED} <= set(KEYS)


def test_the_keys_are_the_arguments_of_the_trainer_and_those_about_the_config() -> None:
    parameters = set(inspect.signature(Trainer).parameters) - {"config"}
    assert {*BUILT, *SETTINGS} == parameters
    assert not {*ABOUT} & parameters


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_the_default_of_the_trainer_is_a_value_of_its_setting(name: str) -> None:
    default = inspect.signature(Trainer).parameters[name].default
    assert convert(default, SETTINGS[name]) == default


@pytest.mark.parametrize("name", sorted(LEAST))
def test_the_least_value_is_a_value_of_its_setting(name: str) -> None:
    assert convert(LEAST[name], SETTINGS[name]) == LEAST[name]
