"""The table of settings fits the Trainer and its groups, and the keys of a config fit together."""

import inspect

import pytest
from tests.tiny import make_model, make_trainer

from hookloop import Data, HookloopError, Setup, Trainer, Validation
from hookloop.config.json_schema import argument_docs
from hookloop.config.parts.signature import convert
from hookloop.config.schema import ABOUT, KEYS, SHOWN
from hookloop.runs.moved_settings import MOVED, moved
from hookloop.runs.policy import NOT_COMPARED
from hookloop.trainer.settings import FLAT, GROUPS, IN_CONFIGS, SETTINGS, in_python


def test_each_key_is_of_one_kind() -> None:
    assert len(KEYS) == len(set(KEYS))
    assert {*SHOWN, *NOT_COMPARED} <= set(KEYS)


def test_the_arguments_of_the_trainer_are_the_settings_and_their_groups() -> None:
    assert set(inspect.signature(Trainer).parameters) == {*FLAT, *GROUPS}
    assert len(inspect.signature(Trainer).parameters) <= 24
    assert not {*ABOUT} & {*FLAT, *GROUPS}


@pytest.mark.parametrize("path", sorted(SETTINGS))
def test_a_setting_is_described_and_its_default_is_one_of_its_values(path: str) -> None:
    argument, _, name = path.partition(".")
    owner = GROUPS[argument] if name else Trainer
    parameter, setting = inspect.signature(owner).parameters[name or argument], SETTINGS[path]
    assert argument_docs(owner)[name or argument]
    if setting.form == "plain":
        assert convert(parameter.default, setting.kind) == parameter.default
    if setting.least is not None:
        assert convert(setting.least, setting.kind) == setting.least


@pytest.mark.parametrize("old", sorted(MOVED))
def test_a_setting_that_has_moved_is_rejected_with_what_to_write_instead(old: str) -> None:
    path = ".".join(MOVED[old])
    assert path in IN_CONFIGS
    with pytest.raises(HookloopError) as caught:
        Trainer(make_model(), **{old: None})
    assert f"has no argument '{old}': write {in_python(path)}." in str(caught.value)


def test_groups_may_be_mappings_and_are_checked_in_both_forms() -> None:
    given = {"data": {"limit": {"train": 2}}, "setup": {"points": ["after_sample"]}}
    assert make_trainer(**given).run.progress.epoch_iters == 2
    with pytest.raises(HookloopError, match="Data has no argument 'limt'. Did you mean 'limit'"):
        make_trainer(data={"limt": 3})
    with pytest.raises(HookloopError, match=r"Data: overfit=0 must be at least 1"):
        Data(overfit=0)
    with pytest.raises(HookloopError, match="at_start='yes' must be True or False"):
        Validation(at_start="yes")
    with pytest.raises(HookloopError, match="data= is a list: write data=Data.*train_data="):
        Trainer(make_model(), data=[1])
    assert Setup.parse({"matmul": "high"}) == Setup(matmul="high")


def test_settings_of_before_are_converted_and_those_of_now_are_kept() -> None:
    old = {"val_every": {"a": 2, "b": 3}, "val_at_start": True, "val_begin": 0, "points": ["x"]}
    now = {"val_every": {"every": {"a": 2, "b": 3}, "at_start": True}, "setup": {"points": ["x"]}}
    assert moved(old) == now == moved(now)
