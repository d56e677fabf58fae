"""The standard set of hooks, and the ways to change it."""

import pytest
from tests.tiny import make_trainer

from hookloop import Hook
from hookloop.errors import HookError
from hookloop.hooks import SaveCheckpoint
from hookloop.trainer.default_hooks import DEFAULT_HOOKS, default_hooks, own_hooks


def test_default_hooks_are_changed_by_name():
    class Mine(Hook):
        def after_train_iter(self, run):
            pass

    def names(changes):
        return [hook.name for hook in make_trainer(default_hooks=changes)._planner.hooks]

    standard = [
        "timing", "console", "metrics", "schedule", "sampler", "nan", "checkpoint", "signals",
        "environment", "requests",
    ]  # fmt: skip
    assert names(None) == standard
    assert names(False) == []
    assert names({"console": None}) == [name for name in standard if name != "console"]
    assert names({"extra": Mine()}) == [*standard, "extra"]
    trainer = make_trainer(default_hooks={"timing": Mine()})
    assert type(trainer._planner.hooks[0]) is Mine
    with pytest.raises(HookError, match="'consle'.*'console'"):
        names({"consle": None})


def test_hooks_may_be_named_by_a_mapping():
    class Mine(Hook):
        def after_train_iter(self, run):
            pass

    trainer = make_trainer(hooks={"one": Mine(), "two": Mine(), "three": None})
    assert [row.hook for row in trainer.timetable()] == ["one", "two"]


def test_default_hooks_come_before_the_users_of_the_same_priority():
    class Mine(Hook):
        def before_train_epoch(self, run):
            pass

    trainer = make_trainer(default_hooks={"console": None}, hooks=[Mine()])
    rows = [row.hook for row in trainer.timetable() if row.point == "before_train_epoch"]
    assert rows == ["timing", "sampler", "mine"]


class Mine(Hook):
    def after_train_iter(self, run):
        pass


def test_an_entry_takes_the_place_and_the_name_of_the_hook_that_it_replaces():
    save = SaveCheckpoint(every="2 epochs").named("anything")
    hooks = default_hooks({"checkpoint": save})
    assert [hook.name for hook in hooks] == list(DEFAULT_HOOKS)
    assert hooks[list(DEFAULT_HOOKS).index("checkpoint")] is save and save.name == "checkpoint"


def test_each_call_makes_hooks_of_its_own():
    first, second = default_hooks(None), default_hooks(None)
    assert not {id(hook) for hook in first} & {id(hook) for hook in second}


def test_every_default_hook_may_be_removed():
    assert default_hooks(dict.fromkeys(DEFAULT_HOOKS)) == []


def test_own_hooks_come_as_a_list_or_by_name():
    one, two = Mine(), Mine().named("two")
    assert own_hooks(None) == []
    assert own_hooks((one, two)) == [one, two]
    assert [hook.name for hook in own_hooks({"a": one, "b": None, "c": two})] == ["a", "c"]
