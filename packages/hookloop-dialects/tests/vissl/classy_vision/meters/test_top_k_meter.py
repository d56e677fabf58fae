"""Meters of the k best classes, with numbers worked out by hand."""

import pytest
import torch

from hookloop_dialects.vissl.classy_vision.meters import (
    AccuracyMeter,
    PrecisionAtKMeter,
    RecallAtKMeter,
)

SCORES = torch.tensor([[0.1, 0.7, 0.2], [0.5, 0.1, 0.4], [0.2, 0.3, 0.5], [0.9, 0.06, 0.04]])
CLASSES = torch.tensor([1, 2, 0, 0])
SEVERAL = torch.tensor([[0, 1, 1], [0, 0, 1], [1, 1, 0], [1, 0, 0]])


@pytest.mark.parametrize(
    ("kind", "target", "expected"),
    [
        (AccuracyMeter, CLASSES, [0.5, 0.75]),
        (PrecisionAtKMeter, CLASSES, [0.5, 0.375]),
        (RecallAtKMeter, CLASSES, [0.5, 0.75]),
        (AccuracyMeter, SEVERAL, [0.5, 1.0]),
        (PrecisionAtKMeter, SEVERAL, [0.5, 0.625]),
        (RecallAtKMeter, SEVERAL, [2 / 6, 5 / 6]),
    ],
)
def test_shares_are_those_of_all_batches(kind, target, expected):
    meter = kind.from_config({"topk": [1, 2]})
    for part in (slice(0, 3), slice(3, 4)):
        meter.update(SCORES[part], target[part])
    assert list(meter.value.values()) == pytest.approx(expected)
    before = meter.value
    meter.sync_state()
    assert meter.value == before
    other = kind([1, 2])
    other.set_classy_state(meter.get_classy_state())
    assert other.value == before
    meter.reset()
    assert meter.value == {"top_1": 0.0, "top_2": 0.0}


def test_a_state_of_another_meter_is_rejected():
    with pytest.raises(ValueError, match=r"the meter is accuracy \[1\]"):
        AccuracyMeter([1]).set_classy_state(AccuracyMeter([2]).get_classy_state())
    with pytest.raises(ValueError, match="topk"):
        AccuracyMeter([])
