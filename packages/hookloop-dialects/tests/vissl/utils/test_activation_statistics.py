"""What layers compute."""

import pytest
import torch

from hookloop_dialects.vissl.utils.activation_statistics import (
    ActivationStatisticsAccumulator,
    ActivationStatisticsMonitor,
)


def test_layers_in_training_are_watched_at_the_frequency():
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.ReLU(), torch.nn.Linear(2, 2))
    seen = ActivationStatisticsAccumulator()
    monitor = ActivationStatisticsMonitor(seen, log_frequency=2)
    monitor.monitor(model)
    inputs = torch.tensor([[1.0, 3.0]])
    for iteration in range(3):
        monitor.set_iteration(iteration)
        model(inputs)
    # Not the container, nor the ReLU, which is left out by default.
    assert [(one.name, one.iteration) for one in seen.stats] == [
        ("0", 0),
        ("2", 0),
        ("0", 2),
        ("2", 2),
    ]
    assert (seen.stats[0].mean, seen.stats[0].spread) == (2.0, 1.0)
    assert seen.stats[0].module_type == "torch.nn.modules.flatten.Flatten"
    model.eval()(inputs)
    monitor.stop()
    model.train()(inputs)
    assert len(seen.stats) == 4 and monitor.iteration == -1


def test_only_the_middle_of_a_feature_map_counts():
    seen = ActivationStatisticsAccumulator()
    monitor = ActivationStatisticsMonitor(seen, 1, sample_feature_map=True)
    layer = torch.nn.Identity()
    monitor.monitor(layer)
    monitor.set_iteration(0)
    layer([torch.arange(9.0).reshape(1, 1, 3, 3), (torch.ones(2),)])
    assert seen.stats[0].mean == pytest.approx((4.0 + 1.0) / 2)
