"""The standard set of hooks, and the ways to change it."""

import pytest
from tests.tiny import make_trainer

from hookloop import Hook
from hookloop.errors import HookError


def test_default_hooks_are_changed_by_name():
    class Mine(Hook):
        def after_train_iter(self, run):
            pass

    def names(changes):
        return [hook.name for hook in make_trainer(default_hooks=changes)._hooks]

    standard = [
        "timing", "console", "metrics", "schedule", "sampler", "nan", "checkpoint", "signals",
    ]  # fmt: skip
    assert names(None) == standard
    assert names(False) == []
    assert names({"console": None}) == [name for name in standard if name != "console"]
    assert names({"extra": Mine()}) == [*standard, "extra"]
    trainer = make_trainer(default_hooks={"timing": Mine()})
    assert type(trainer._hooks[0]) is Mine
    with pytest.raises(HookError, match="no 'consle' to remove. Did you mean 'console'"):
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
