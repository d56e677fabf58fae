"""Checkpoints under iMIX's names."""

import pytest
import torch
from tests.imix.tracing import train

from hookloop_dialects.imix import engine


def models(tmp_path):
    return sorted(path.name for path in (tmp_path / "run").glob("*.pth"))


@pytest.mark.parametrize(
    ("arguments", "options", "names"),
    [
        ({}, {"max_epochs": 2}, ["m_epoch0_model", "m_epoch1_model"]),
        ({"epoch_period": 2}, {"max_epochs": 3}, ["m_epoch1_model"]),
        (
            {"iter_period": 2},
            {"max_epochs": 1},
            ["m_epoch0_iter2_model", "m_epoch0_model"],
        ),
        ({"iter_period": 2}, {"max_iters": 5}, ["m_iter0000001_model", "m_iter0000003_model"]),
        (
            {"max_num_checkpoints": 2},
            {"max_epochs": 4},
            ["m_epoch2_model", "m_epoch3_model"],
        ),
    ],
)
def test_checkpoints_have_imixs_names(arguments, options, names, tmp_path):
    train(tmp_path, engine.hooks.CheckPointHook(None, "m", **arguments), **options)
    assert models(tmp_path) == [*(f"{name}.pth" for name in names), "m_model_final.pth"]


def test_the_name_of_the_newest_is_known_to_other_hooks(tmp_path):
    hook = engine.hooks.CheckPointHook(prefix="m")
    assert hook.curr_checkpoint_name is None
    train(tmp_path, hook, max_epochs=2)
    assert hook.curr_checkpoint_name == "m_epoch1_model.pth"


def test_the_final_file_comes_at_the_hooks_own_limit(tmp_path):
    train(tmp_path, engine.hooks.CheckPointHook(prefix="m", max_epoch=1), max_epochs=2)
    final = torch.load(tmp_path / "run" / "m_model_final.pth", weights_only=True)
    assert final["progress"]["epoch"] == 2  # Written again: later epochs are beyond it too.
