"""The arguments of CheckpointHook; which files it leaves is in test_keep_checkpoints."""

import pytest

from hookloop_mmengine.hooks import CheckpointHook
from hookloop_mmengine.hooks.keep_checkpoints import KeepCheckpoints
from hookloop_mmengine.hooks.publish_checkpoints import PublishCheckpoints


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"save_begin": -1}, ValueError, "save_begin should not be less than 0, but got -1"),
        ({"save_best": ["auto", "acc"]}, AssertionError, 'Only support one "auto"'),
        ({"save_best": ["acc", "acc"]}, AssertionError, "duplicate element"),
        ({"save_best": "zebra"}, ValueError, "Cannot infer the rule for zebra"),
        ({"save_best": "acc", "rule": "more"}, KeyError, "rule must be greater, less or None"),
        (
            {"save_best": ["acc", "loss"], "rule": ["less", "less", "less"]},
            AssertionError,
            "rule has 3 entries for 2 metrics",
        ),
        ({"published_keys": 3}, TypeError, "published_keys should be str"),
        ({"backend_args": {}}, ValueError, "out_dir takes URLs"),
        ({"file_client_args": {}}, ValueError, "out_dir takes URLs"),
        ({"max_keep_ckpt": 1}, TypeError, "Did you mean 'max_keep_ckpts'?"),
    ],
)
def test_wrong_arguments_are_rejected_at_once(options, error, message):
    with pytest.raises(error, match=message):
        CheckpointHook(**options)


@pytest.mark.parametrize(
    ("metric", "rule"),
    [
        ("acc", "greater"),
        ("ACC", "greater"),
        ("top", "greater"),
        ("coco/bbox_mAP", "greater"),
        ("accuracy_top1", "greater"),
        ("loss", "less"),
        ("val_loss", "less"),
        ("val_loss_top", "greater"),  # It matches both; greater comes first.
    ],
)
def test_the_rule_is_inferred_from_the_name(metric, rule):
    assert CheckpointHook(save_best=metric).rule_of(metric) == rule


def test_own_keys_extend_what_can_be_inferred():
    hook = CheckpointHook(save_best=["zebra", "lion"], greater_keys=["zebra"], less_keys=["lion"])
    assert [hook.rule_of(name) for name in ("zebra", "lion")] == ["greater", "less"]


def test_rules_are_for_all_metrics_or_one_each():
    assert CheckpointHook(save_best=["acc", "loss"], rule="less").rule_of("acc") == "less"
    each = CheckpointHook(save_best=["acc", "loss"], rule=["less", "greater"])
    assert [each.rule_of(name) for name in ("acc", "loss")] == ["less", "greater"]
    assert CheckpointHook(save_best="auto", rule="less").rule_of("anything") == "less"


def test_the_rule_of_an_automatic_metric_is_inferred_late():
    hook = CheckpointHook(save_best="auto")
    assert hook.rule_of("acc") == "greater"
    with pytest.raises(ValueError, match="Cannot infer the rule for zebra"):
        hook.rule_of("zebra")


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "epoch_{}.pth"),
        ({"by_epoch": False}, "iter_{}.pth"),
        ({"filename_tmpl": "my_{}.pth"}, "my_{}.pth"),
    ],
)
def test_files_are_named_after_what_is_counted(options, name):
    assert CheckpointHook(**options).filename_tmpl == name


def test_native_hooks_do_the_work():
    kinds = [type(hook) for hook in CheckpointHook().native_hooks()]
    assert kinds == [KeepCheckpoints]
    publishing = CheckpointHook(published_keys="state_dict")
    assert publishing.published_keys == ["state_dict"]
    kinds = [type(hook) for hook in publishing.native_hooks()]
    assert kinds == [KeepCheckpoints, PublishCheckpoints]


def test_mmengines_defaults():
    hook = CheckpointHook()
    assert (hook.priority, hook.interval, hook.save_last) == ("VERY_LOW", -1, True)
    assert (hook.max_keep_ckpts, hook.save_begin, hook.save_best) == (-1, 0, [])
