"""Hooks made from a config."""

import pytest

from hookloop import dialects
from hookloop_dialects.pointrix import HOOK_REGISTRY, Hook, parse_hooks


def test_hooks_of_a_config_may_have_arguments_and_may_be_none():
    assert parse_hooks({}) == parse_hooks(None) == []
    (hook,) = parse_hooks({"lr": {"name": "LRSchedulerHook", "schedulers": {"a": len}}})
    assert hook.schedulers == {"a": len}


def test_hooks_keep_the_order_of_the_config(monkeypatch):
    monkeypatch.setattr(HOOK_REGISTRY, "_registered", {})

    @HOOK_REGISTRY.register()
    class MineOfThisTest(Hook): ...

    made = parse_hooks({"z": {"name": "MineOfThisTest"}, "a": {"name": "CheckPointHook"}})
    assert [type(hook).__name__ for hook in made] == ["MineOfThisTest", "CheckPointHook"]


def test_an_entry_needs_a_name_that_is_registered():
    with pytest.raises(KeyError, match="name"):
        parse_hooks({"a": {}})
    with pytest.raises(KeyError, match="HOOK_REGISTRY.*Did you mean 'LogHook'"):
        parse_hooks({"a": {"name": "LogHok"}})


def test_the_module_of_older_versions_has_the_same_base_class():
    with dialects.alias("pointrix"):
        from pointrix.hook.hook import HOOK_REGISTRY as OLD_REGISTRY
        from pointrix.hook.hook import Hook as OldHook
    assert (OLD_REGISTRY, OldHook) == (HOOK_REGISTRY, Hook)
