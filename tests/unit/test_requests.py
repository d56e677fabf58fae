"""What hooks request of the loop."""

from hookloop.requests import both


def test_requests_for_validations_add_up():
    small, full = frozenset({"small"}), frozenset({"full"})
    assert both(False, False) is False
    assert both(False, small) == both(small, False) == small
    assert both(small, full) == {"small", "full"}
    assert both(small, True) is both(True, full) is True
