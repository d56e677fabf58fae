"""Schedulers of projects, in MMEngine's way, for the learning rate."""

import torch

from hookloop_mmengine.optim.scheduler.lr_scheduler import LinearLR, LRSchedulerMixin
from hookloop_mmengine.optim.scheduler.param_scheduler import INF, _ParamScheduler


class HalvingParamScheduler(_ParamScheduler):
    def __init__(self, optimizer, param_name, factor=0.5, **options):
        self.factor = factor
        super().__init__(optimizer, param_name, **options)

    def _get_value(self):
        if self.last_step == 0:
            return [group[self.param_name] for group in self.optimizer.param_groups]
        return [group[self.param_name] * self.factor for group in self.optimizer.param_groups]


class HalvingLR(LRSchedulerMixin, HalvingParamScheduler):
    pass


def test_a_scheduler_of_a_project_computes_its_values():
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    scheduler = HalvingLR(optimizer, factor=0.25, begin=1)
    rates = []
    for _ in range(3):
        rates.append(optimizer.param_groups[0]["lr"])
        scheduler.step()
    assert rates == [1.0, 1.0, 0.25]
    assert scheduler.end == INF
    assert scheduler.base_values == [1.0]


def test_the_path_has_the_schedulers_of_optim():
    from hookloop_mmengine import optim

    assert LinearLR is optim.LinearLR
