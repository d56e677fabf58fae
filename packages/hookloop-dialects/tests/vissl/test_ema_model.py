"""The average of the weights."""

import torch

from hookloop_dialects.vissl.ema_model import ModelEmaV2


def test_the_average_follows_and_is_set():
    model = torch.nn.BatchNorm1d(2)
    average = ModelEmaV2(model, decay=0.75)
    with torch.no_grad():
        model.weight.fill_(5.0)
        model.num_batches_tracked.fill_(9)
    average.update(model)
    assert average.module.weight.tolist() == [2.0, 2.0]
    assert average.module.num_batches_tracked == 9  # Counters are copied.
    average.set(model)
    assert average.module.weight.tolist() == [5.0, 5.0]
    assert not average.module.training and not average.module.weight.requires_grad
    assert average.device.type == "cpu"
