"""One meter for each output."""

import pytest
import torch

from hookloop_dialects.vissl.meters import (
    AccuracyListMeter,
    PrecisionAtKListMeter,
    RecallAtKListMeter,
    build_meter,
)

SCORES = torch.eye(4)[[0, 1, 2, 2]]
TARGETS = torch.tensor([0, 1, 2, 3])


def test_values_are_percent_by_k_and_output():
    meter = build_meter({"name": "accuracy_list_meter", "num_meters": 2, "topk_values": [1]})
    assert isinstance(meter, AccuracyListMeter)
    meter.update([SCORES, torch.eye(4)], TARGETS)
    meter.sync_state()
    assert meter.value == {"top_1": {0: 75.0, 1: 100.0}}
    again = AccuracyListMeter(2, [1])
    again.set_classy_state(meter.get_classy_state())
    assert again.value == meter.value
    meter.reset()
    assert meter.value == {"top_1": {0: 0.0, 1: 0.0}}


@pytest.mark.parametrize("kind", [PrecisionAtKListMeter, RecallAtKListMeter])
def test_outputs_of_one_name_are_a_list(kind):
    meter = kind(2, [1], ["res5", "res5"])
    meter.update([SCORES, torch.eye(4)], TARGETS)
    assert meter.value == {"top_1": {"res5": [75.0, 100.0]}}
    assert meter.name.endswith("_at_k_list_meter")


def test_another_number_of_outputs_is_rejected():
    with pytest.raises(ValueError, match="num_meters is 2, the model has 1"):
        AccuracyListMeter(2, [1]).update(SCORES, TARGETS)
    with pytest.raises(ValueError, match="at least 1"):
        AccuracyListMeter(0, [1])
