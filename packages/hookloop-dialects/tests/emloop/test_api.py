"""Hooks made from an emloop config."""

import logging
import sys
import types

import pytest

from hookloop.errors import HookError
from hookloop_dialects.emloop import AbstractHook, create_hooks, hooks
from hookloop_dialects.emloop.api import find


class Mine(AbstractHook):
    def __init__(self, size=1, **kwargs):
        super().__init__(**kwargs)
        self.arguments = {"size": size, **kwargs}


@pytest.fixture(autouse=True)
def my_project(monkeypatch):
    package, module = types.ModuleType("my_project"), types.ModuleType("my_project.hooks")
    module.Mine = Mine
    module.number = 3
    monkeypatch.setitem(sys.modules, "my_project", package)
    monkeypatch.setitem(sys.modules, "my_project.hooks", module)


def test_hooks_are_made_in_order_with_what_emloop_supplies():
    listed = ["my_project.hooks.Mine", {"my_project.hooks.Mine": {"size": 7, "model": "own"}}]
    first, second = create_hooks({"hooks": listed}, model="the model", dataset="the data")
    supplied = {"model": "the model", "dataset": "the data", "output_dir": None}
    assert first.arguments == {"size": 1, **supplied}
    assert second.arguments == {"size": 7, **supplied, "model": "own"}  # The config wins.


def test_a_trace_is_added_at_the_end_with_a_warning(tmp_path, caplog):
    made = create_hooks({"hooks": ["LogVariables"]}, output_dir=str(tmp_path))
    assert [type(hook) for hook in made] == [hooks.LogVariables, hooks.TrainingTrace]
    assert "TrainingTrace was added" in caplog.text


@pytest.mark.parametrize("listed", [["TrainingTrace", "LogVariables"], ["TrainingTrace"]])
def test_a_listed_trace_is_the_only_one(listed, tmp_path, caplog):
    made = create_hooks({"hooks": listed}, output_dir=str(tmp_path))
    assert [type(hook).__name__ for hook in made] == listed
    assert not caplog.messages


@pytest.mark.parametrize("config", [{}, {"hooks": None}, {"hooks": []}])
def test_a_config_without_hooks_has_none(config):
    assert create_hooks(config) == []


def test_a_colon_without_arguments_is_a_warning(caplog):
    with caplog.at_level(logging.WARNING):
        (hook,) = create_hooks({"hooks": [{"my_project.hooks.Mine": None}]})
    assert hook.arguments["size"] == 1
    assert "'my_project.hooks.Mine' has a colon and no arguments" in caplog.text


@pytest.mark.parametrize("entry", [{"A": {}, "B": {}}, {}, 3, ["LogVariables"]])
def test_anything_else_is_not_a_hook(entry):
    with pytest.raises(HookError, match="is not a hook: write a name"):
        create_hooks({"hooks": [entry]})


def test_a_name_is_found_in_the_catalogue_or_by_its_module():
    assert find("SaveBest") is hooks.SaveBest
    assert find("emloop_tensorflow.hooks.WriteTensorboard") is hooks.WriteTensorBoard
    assert find("cxflow_tensorflow.hooks.WriteTensorBoard") is hooks.WriteTensorBoard
    assert find("my_project.hooks.Mine") is Mine


def test_a_name_that_is_not_found_is_an_error_with_advice():
    with pytest.raises(HookError, match=r"Did you mean 'SaveBest'.*my_project.hooks.SaveBset"):
        find("SaveBset")
    for name in ("number", "Nothing"):
        with pytest.raises(HookError, match=f"'my_project.hooks' has no hook '{name}'"):
            find(f"my_project.hooks.{name}")
    with pytest.raises(ModuleNotFoundError):
        find("no_such_package.Hook")
