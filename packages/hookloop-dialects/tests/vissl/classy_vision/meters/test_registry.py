"""Meters by their names in configs."""

import pytest

from hookloop.errors import HookError
from hookloop_dialects.vissl.classy_vision.meters import ClassyMeter, registry


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setattr(registry, "METER_REGISTRY", {})


def test_both_systems_sections_are_read():
    ssl = {"METERS": {"names": ["accuracy_list_meter"],
                      "accuracy_list_meter": {"num_meters": 1, "topk_values": [1]}}}  # fmt: skip
    one = {"METERS": {"name": "accuracy", "accuracy": {"topk": [1]}}}
    classy = {"meters": {"accuracy": {"topk": [1]}, "recall_at_k": {"topk": [2]}}}
    listed = {"meters": [{"name": "precision_at_k", "topk": [1]}]}
    names = [[meter.name for meter in registry.meters_of(c)] for c in (ssl, one, classy, listed)]
    assert names == [
        ["accuracy_list_meter"], ["accuracy"], ["accuracy", "recall_at_k"], ["precision_at_k"],
    ]  # fmt: skip
    assert registry.meters_of({}) == []


def test_a_meter_of_ones_own_is_built_and_an_unknown_one_rejected():
    class Mine(ClassyMeter):
        def __init__(self, size):
            self.size = size

    registry.register_meter("mine")(Mine)
    assert registry.build_meter({"name": "mine", "size": 3}).size == 3
    with pytest.raises(HookError, match="'accurracy'.*'accuracy'.*metrics="):
        registry.build_meter({"name": "accurracy"})
    with pytest.raises(ValueError, match="already"):
        registry.register_meter("mine")(ClassyMeter)
    with pytest.raises(ValueError, match="is not a ClassyMeter"):
        registry.register_meter("other")(int)
