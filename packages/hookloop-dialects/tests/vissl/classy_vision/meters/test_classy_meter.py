"""A meter of a project's own."""

import pytest

from hookloop_dialects.vissl.classy_vision.meters.classy_meter import ClassyMeter


class Count(ClassyMeter):
    def __init__(self, first=0):
        self.count = first

    name = "count"

    @property
    def value(self):
        return {"batches": self.count}


def test_a_meter_has_name_and_value_and_needs_methods():
    meter = Count.from_config({"first": 2})
    assert repr(meter) == "count_meter(batches=2.000000)"  # In log lines of hooks.
    assert meter.get_classy_state() == {}
    meter.sync_state()
    with pytest.raises(NotImplementedError):
        meter.update(None, None)
    with pytest.raises(NotImplementedError):
        meter.reset()


def test_a_meter_is_shown_whatever_its_value_is():
    class Nested(Count):
        @property
        def value(self):
            return {"top_1": {0: 0.5}}

    class Plain(Count):
        @property
        def value(self):
            return 3

    assert repr(Nested()) == "{'name': 'count', 'value': {'top_1': {0: 0.5}}}"
    assert "Plain object" in repr(Plain())
