"""Whether native hooks replace a hook of MMEngine, or its own methods are called."""

from typing import ClassVar

from hookloop.hooks import StepSchedules
from hookloop_mmengine.adapter import MMEngineAdapter, adapt
from hookloop_mmengine.hooks import Hook
from hookloop_mmengine.hooks.replaceable import Replaceable


class Row(Hook, Replaceable):
    own: ClassVar = ("before_train", "helper")

    def before_train(self, runner): ...
    def helper(self): ...
    def after_train(self, runner): ...

    def native_hooks(self):
        return [StepSchedules()]


class Adds(Row):
    def before_run(self, runner): ...


class Overrides(Row):
    def before_train(self, runner): ...


class OverridesHelper(Adds):
    def helper(self): ...


def kinds(hook):
    return [type(native) for native in adapt(hook)]


def test_native_hooks_stand_for_an_unchanged_hook():
    assert not Row().acts_itself
    assert kinds(Row()) == [StepSchedules, MMEngineAdapter]


def test_methods_that_native_hooks_replace_are_not_called_as_well():
    wrapper = adapt(Row())[-1]
    assert "before_train" not in vars(wrapper)
    assert "after_train" in vars(wrapper)


def test_a_subclass_that_adds_methods_keeps_the_native_hooks():
    assert not Adds().acts_itself
    assert kinds(Adds()) == [StepSchedules, MMEngineAdapter]


def test_a_subclass_that_overrides_one_acts_itself():
    assert Overrides().acts_itself
    assert kinds(Overrides()) == [MMEngineAdapter]


def test_a_helper_counts_too_also_in_a_later_subclass():
    assert OverridesHelper().acts_itself


def test_the_priority_goes_to_the_native_hooks():
    hook = Row()
    hook.priority = 33
    assert [native.priority for native in adapt(hook)] == [33, 33]
