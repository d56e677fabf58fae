"""Parameters that are read from the source are those of the hooks."""

import inspect

import pytest

import hookloop.hooks
from hookloop.cli.look.hook_parameters import hook_parameters


@pytest.mark.parametrize("name", hookloop.hooks.__all__)
def test_they_are_those_of_the_constructor(name: str) -> None:
    signature = inspect.signature(getattr(hookloop.hooks, name))
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    real = [one.name for one in signature.parameters.values() if one.kind not in kinds]
    assert hook_parameters(name) == real


def test_another_name_has_none() -> None:
    assert hook_parameters("my.Hook") == [] and hook_parameters("../../x") == []
