"""Schedulers of projects for the momentum."""

import pytest
import torch
from tests.mmengine.optim.scheduler.test_lr_scheduler import HalvingParamScheduler

from hookloop_mmengine.optim.scheduler.momentum_scheduler import MomentumSchedulerMixin


class HalvingMomentum(MomentumSchedulerMixin, HalvingParamScheduler):
    pass


def weights():
    return [torch.nn.Parameter(torch.ones(1))]


def test_the_momentum_of_sgd_and_the_first_beta_of_adam():
    for optimizer, read in (
        (torch.optim.SGD(weights(), lr=1, momentum=0.8), lambda group: group["momentum"]),
        (torch.optim.Adam(weights(), betas=(0.8, 0.9)), lambda group: group["betas"][0]),
    ):
        scheduler = HalvingMomentum(optimizer)
        scheduler.step()
        scheduler.step()
        assert read(optimizer.param_groups[0]) == pytest.approx(0.2)
    assert optimizer.param_groups[0]["betas"][1] == 0.9


def test_an_optimizer_without_momentum_is_rejected():
    with pytest.raises(ValueError, match="must support momentum"):
        HalvingMomentum(torch.optim.Adagrad(weights()))
