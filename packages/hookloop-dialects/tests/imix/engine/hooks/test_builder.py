"""Hooks made from a config's ``custom_hooks``."""

import pytest

from hookloop_dialects.imix import HOOKS, HookBase, build_hook, build_hooks


def test_a_name_that_is_not_registered_is_a_key_error_with_the_nearest():
    with pytest.raises(KeyError, match="Did you mean 'EMAIterHook'"):
        build_hook({"type": "EMAItreHook"})


def test_a_hook_gets_its_arguments_and_its_level():
    hook = build_hook({"type": "TextLoggerHook", "text": "hello", "level": "LOW"})
    assert (hook.text, hook.level.name) == ("hello", "LOW")
    assert build_hook({"type": "TextLoggerHook"}).level.name == "NORMAL"


def test_the_config_is_not_changed():
    config = {"type": "TextLoggerHook", "level": 30}
    build_hook(config)
    assert config == {"type": "TextLoggerHook", "level": 30}


def test_a_type_may_be_a_class_or_a_registered_name(monkeypatch):
    monkeypatch.setattr(HOOKS, "_registered", {})

    @HOOKS.register_module()
    class MineOfThisTest(HookBase): ...

    made = build_hooks([{"type": MineOfThisTest}, {"type": "MineOfThisTest"}])
    assert [type(hook) for hook in made] == [MineOfThisTest, MineOfThisTest]
    assert build_hooks([]) == []


def test_a_wrong_argument_is_the_constructors_own_error():
    with pytest.raises(TypeError, match="txet"):
        build_hook({"type": "TextLoggerHook", "txet": ""})
