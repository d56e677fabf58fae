"""The base class of Pointrix's hooks."""

from hookloop.engine.points import POINTS
from hookloop_dialects.pointrix import Hook


def test_every_location_is_a_method_and_one_of_our_points():
    assert len(Hook.locations) == 12
    assert set(Hook.locations) <= {point.name for point in POINTS}
    hook = Hook()
    for location in Hook.locations:
        getattr(hook, location)(None)
    hook.exception()
