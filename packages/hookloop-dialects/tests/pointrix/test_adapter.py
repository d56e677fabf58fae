"""Pointrix's methods at our mount points."""

import pytest
from tests.pointrix.cloud import tracing, train
from tests.tiny import make_data, make_trainer

from hookloop.engine.hook import Hook as NativeHook
from hookloop.hooks import SaveCheckpoint
from hookloop_dialects.pointrix import Hook
from hookloop_dialects.pointrix.adapter import PointrixAdapter, adapt


def test_exception_is_called_without_arguments_when_the_run_fails(tmp_path):
    class Clean(Hook):
        def exception(self):
            seen.append("cleaned")

        def after_train(self, trainner):
            seen.append("trained")

    class Fail(NativeHook):
        def after_train_iter(self, run):
            raise RuntimeError("broken")

    seen = []
    with pytest.raises(RuntimeError, match="broken"):
        train(tmp_path, Clean(), Fail())
    assert seen == ["cleaned"]


def test_the_points_that_pointrix_declares_and_never_calls_are_called(tmp_path):
    names = ["after_load_checkpoint", "before_save_checkpoint", "after_run"]
    hook = tracing(names)
    train(tmp_path, hook, SaveCheckpoint(), max_epochs=1)
    assert [call[0] for call in hook.calls] == ["before_save_checkpoint", "after_run"]
    hook = tracing(names)
    train(tmp_path, hook, SaveCheckpoint(), max_epochs=2, resume=True)
    assert hook.calls[0][0] == "after_load_checkpoint"


def test_hooks_act_in_list_order_whatever_their_priority(tmp_path):
    class Act(Hook):
        def __init__(self, label, priority):
            self.label = label
            self.priority = priority

        def before_train(self, trainner):
            order.append(self.label)

    order = []
    train(tmp_path, Act("low", "LOW"), Act("high", "HIGH"))
    assert order == ["low", "high"]


def test_the_step_in_every_method(tmp_path):
    methods = [*Hook.locations]
    hook = tracing(methods)
    train(tmp_path, hook, max_iters=2, val_every=2, val_data=make_data(4))
    assert hook.calls == [
        ("before_run", 0),
        ("before_train", 1),
        ("before_train_iter", 1), ("after_train_iter", 1),
        ("before_train_iter", 2), ("after_train_iter", 2),
        ("before_val", 3), ("before_val_iter", 3), ("after_val_iter", 3), ("after_val", 3),
        ("after_train", 3),
        ("after_run", 3),
    ]  # fmt: skip


def test_steps_continue_after_a_resume(tmp_path):
    train(tmp_path, SaveCheckpoint())
    hook = tracing(["before_train_iter"])
    train(tmp_path, hook, SaveCheckpoint(), max_epochs=2, resume=True)
    assert [step for _, step in hook.calls] == [4, 5, 6]


def test_only_overridden_methods_are_attached():
    (adapted,) = adapt(tracing(["before_val"]))
    assert isinstance(adapted, PointrixAdapter) and adapted.priority.name == "NORMAL"
    rows = make_trainer(hooks=[adapted]).timetable()
    assert [row.point for row in rows] == ["before_run", "before_val"]
