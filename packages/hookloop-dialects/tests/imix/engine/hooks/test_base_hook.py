"""The base class of iMIX's hooks and its levels."""

import pytest

from hookloop_dialects.imix import HookBase, PriorityStatus
from hookloop_dialects.imix.engine.hooks.base_hook import read_level


@pytest.mark.parametrize(
    ("level", "status"),
    [
        (PriorityStatus.LOW, "LOW"), (40, "LOW"), (30, "NORMAL"), ("HIGH", "HIGH"), ("low", "LOW"),
        (35, "NORMAL"), (-1, "NORMAL"), (True, "NORMAL"), ("soon", "NORMAL"), (0, "HIGHEST"),
    ],
)  # fmt: skip
def test_levels_are_read(level, status, caplog):
    hook = HookBase()
    hook.level = level
    assert hook.level.name == status
    known = status != "NORMAL" or level == 30
    assert bool(caplog.messages) == (not known)


def test_a_hook_is_normal_unless_its_class_says_otherwise():
    class Early(HookBase):
        _level = PriorityStatus.HIGHER

    assert (HookBase().level.name, Early().level.name) == ("NORMAL", "HIGHER")
    late = Early()
    late.level = "LOWEST"
    assert (late.level.name, Early().level.name) == ("LOWEST", "HIGHER")


def test_the_levels_have_imixs_numbers():
    assert [level.value for level in PriorityStatus] == [0, 10, 20, 30, 40, 50, 60]


def test_a_warning_lists_the_levels(caplog):
    assert read_level(25) is PriorityStatus.NORMAL
    assert "25 is not a level" in caplog.text and "HIGH 20, NORMAL 30" in caplog.text
    assert read_level(False) is PriorityStatus.NORMAL  # Though it equals 0.


def test_every_stage_does_nothing_by_default():
    hook = HookBase()
    for stage in ("train", "train_epoch", "train_iter"):
        getattr(hook, f"before_{stage}")()
        getattr(hook, f"after_{stage}")()
