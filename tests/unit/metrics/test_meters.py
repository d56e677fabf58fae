import numpy as np
import pytest
import torch

from hookloop.errors import MetricError
from hookloop.metrics.meters import Accumulating, Meters


class Total:
    """Accumulates the sum of all outputs, as a torchmetrics object would."""

    def __init__(self, result=None):
        self.result = result
        self.total = 100.0  # Left over from an earlier evaluation.

    def update(self, output, targets):
        self.total += float(output.sum())

    def compute(self):
        return self.total if self.result is None else self.result

    def reset(self):
        self.total = 0.0


def test_a_function_is_averaged_over_samples_and_not_over_batches():
    meters = Meters({"mean": lambda output, targets: output.mean()})
    for batch in torch.arange(10.0).split([4, 4, 2]):
        meters.update(batch, None, len(batch))
    assert float(meters.compute()["mean"]) == 4.5


def test_an_accumulating_object_is_reset_at_the_start_and_computed_at_the_end():
    total = Total()
    assert isinstance(total, Accumulating)
    meters = Meters({"total": total})
    for batch in (torch.ones(3), torch.ones(2)):
        meters.update(batch, None, len(batch))
    assert meters.compute() == {"total": 5.0}


def test_several_numbers_of_one_object_are_named_by_their_keys():
    several = {"precision": 0.5, "recall": 0.25}
    meters = Meters({"class": Total(several), "": Total({"f1": 1.0})})
    assert meters.compute() == {"class/precision": 0.5, "class/recall": 0.25, "f1": 1.0}


@pytest.mark.parametrize("weight", [float, torch.tensor])
def test_a_number_is_averaged_by_its_weight(weight):
    meters = Meters({})
    meters.add("loss", 1.0, weight(3.0))
    meters.add("loss", torch.tensor([5.0]), weight(1.0))
    assert float(meters.compute()["loss"]) == 2.0


def test_nothing_is_read_from_the_device_before_the_end(monkeypatch):
    reads = []
    for method in ("item", "tolist", "__float__", "cpu"):
        monkeypatch.setattr(torch.Tensor, method, lambda self, *_, m=method: reads.append(m))
    meters = Meters({"mean": lambda output, targets: output.mean()})
    meters.update(torch.ones(2), None, 2)
    assert isinstance(meters.compute()["mean"], torch.Tensor) and reads == []


def test_a_metric_that_needs_gradients_is_detached():
    meters = Meters({})
    meters.add("loss", torch.ones((), requires_grad=True) * 2, 1)
    assert not meters.compute()["loss"].requires_grad


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (torch.zeros(2), r"'mean' returned a tensor of shape \(2,\): return one number per batch"),
        ("much", "'mean' returned 'much': return one number per batch"),
        (None, "'mean' returned None"),
    ],
)
def test_a_function_must_return_one_number(value, message):
    meters = Meters({"mean": lambda output, targets: value})
    with pytest.raises(MetricError, match=message):
        meters.update(None, None, 1)


def test_an_object_must_compute_scalars():
    with pytest.raises(MetricError, match=r"'f1'.*\(3,\).*'macro'"):
        Meters({"f1": Total(torch.zeros(3))}).compute()


def test_a_function_may_return_a_number_of_numpy():
    meters = Meters({"mean": lambda output, targets: np.float32(0.5)})
    meters.update(None, None, 1)
    assert meters.compute() == {"mean": 0.5}


def test_numbers_that_nobody_asked_for_come_last():
    meters = Meters({"f1": Total(torch.tensor(1.0)), "mean": lambda output, targets: 1.0})
    for name in ("extra", "loss"):
        meters.add(name, 2.0, 1)
    meters.update(torch.zeros(1), None, 1)
    assert list(meters.compute()) == ["loss", "mean", "f1", "extra"]
