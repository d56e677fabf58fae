"""Modes, parameters and seeds."""

import torch

from hookloop_dialects.vissl.classy_vision.generic import modes


def test_each_module_gets_its_own_mode_back():
    model = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.BatchNorm1d(1)).train()
    model[1].eval()
    with modes.eval_model(model):
        assert not model[0].training
    assert model[0].training and not model[1].training
    with modes.train_model(model):
        assert model[1].training
    assert not model[1].training


def test_leaves_are_told_apart():
    model = torch.nn.Sequential(torch.nn.Linear(2, 3))
    assert modes.is_leaf(model[0]) and not modes.is_leaf(model)


def test_a_block_is_timed_and_versions_compare():
    with modes.Timer() as timer:
        assert timer.elapsed_time == 0
    assert timer.elapsed_time > 0
    assert modes.get_torch_version() >= [1, 7]
    assert modes.log_class_usage("Hooks", object) is None
