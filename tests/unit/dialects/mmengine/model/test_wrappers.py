"""Models that wrap another model."""

import torch
from torch import nn

from hookloop.dialects.mmengine.model import is_model_wrapper
from hookloop.dialects.mmengine.model.wrappers import MMDistributedDataParallel


def test_parallel_models_are_wrappers():
    assert is_model_wrapper(nn.DataParallel(nn.Linear(1, 1)))
    assert not is_model_wrapper(nn.Linear(1, 1))
    assert not is_model_wrapper(nn.Sequential(nn.Linear(1, 1)))


def test_mmengines_name_is_torchs_class():
    assert MMDistributedDataParallel is torch.nn.parallel.DistributedDataParallel
