"""Hooks by their names in configs."""

import pytest

from hookloop_dialects.vissl import ClassyHook, build_hook, build_hooks, register_hook
from hookloop_dialects.vissl.classy_vision.hooks import registry
from hookloop_dialects.vissl.classy_vision.hooks.classy_hook import QuietHook


@pytest.fixture(autouse=True)
def empty(monkeypatch):
    """No test finds what another has registered."""
    monkeypatch.setattr(registry, "HOOK_REGISTRY", registry.HookRegistry())


def test_hooks_are_registered_and_built_by_name():
    @register_hook("quiet")
    class Quiet(QuietHook):
        def __init__(self, loud=False):
            super().__init__()
            self.loud = loud

    assert build_hook({"name": "quiet", "loud": True}).loud
    assert not build_hook({"name": "quiet"}).loud


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(AssertionError, match="Did you mean 'checkpoint'"):
        build_hook({"name": "chekpoint"})
    with pytest.raises(AssertionError, match="registered as 'None'"):
        build_hook({})


def test_built_in_hooks_are_made_in_order(tmp_path):
    listed = [
        {"name": "checkpoint", "checkpoint_folder": str(tmp_path)},
        {"name": "progress_bar"},
        {"name": "loss_lr_meter_logging", "log_freq": 3},
    ]
    made = build_hooks(listed)
    assert [type(hook).__name__ for hook in made] == [
        "CheckpointHook", "ProgressBarHook", "LossLrMeterLoggingHook",
    ]  # fmt: skip
    assert listed[0]["name"] == "checkpoint"  # The config is not changed.


def test_a_registered_hook_replaces_a_built_in_one():
    mine = register_hook("checkpoint")(type("Mine", (QuietHook,), {}))
    assert type(build_hook({"name": "checkpoint"})) is mine


def test_settings_are_a_copy():
    @register_hook("greedy")
    class Greedy(QuietHook):
        def __init__(self, values):
            super().__init__()
            values.append(1)

    config = {"name": "greedy", "values": []}
    build_hook(config)
    assert config["values"] == []


def test_a_name_that_is_taken_and_a_class_that_is_no_hook_are_rejected():
    register_hook("taken")(type("First", (QuietHook,), {}))
    second = type("Second", (QuietHook,), {})
    with pytest.raises(ValueError, match="registered as 'taken' already"):
        register_hook("taken")(second)
    with pytest.raises(ValueError, match="Plain is not a ClassyHook"):
        register_hook("plain")(type("Plain", (), {}))
    assert register_hook("taken", bypass_checks=True)(second) is second
    assert issubclass(type(build_hook({"name": "taken"})), ClassyHook)
    register_hook("taken")(type("Second", (QuietHook,), {}))  # A file loaded again.
