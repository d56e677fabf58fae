"""Modes, parameters and seeds."""

import numpy as np
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


def test_parameters_of_batch_norm_are_apart():
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    model[0].bias.requires_grad_(False)
    norms, others = modes.split_batchnorm_params(model)
    assert [value.shape for value in norms] == [(3,), (3,)]
    assert others == [model[0].weight]
    assert modes.is_leaf(model[0]) and not modes.is_leaf(model) and not modes.is_on_gpu(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1)
    assert len(list(modes.master_params(optimizer))) == 4


def test_random_numbers_of_a_block_follow_from_its_seed():
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    with modes.torch_seed(5):
        inside = torch.rand(1)
    with modes.torch_seed(5):
        assert torch.equal(torch.rand(1), inside)
    with modes.torch_seed(None):
        assert torch.equal(torch.rand(1), expected)
    with modes.numpy_seed(5, 6):
        first = np.random.rand()
    with modes.numpy_seed(5, 6):
        assert np.random.rand() == first


def test_a_block_is_timed_and_versions_compare():
    with modes.Timer() as timer:
        assert timer.elapsed_time == 0
    assert timer.elapsed_time > 0
    assert modes.get_torch_version() >= [1, 7]
    assert modes.log_class_usage("Hooks", object) is None
