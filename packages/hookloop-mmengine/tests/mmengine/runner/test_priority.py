"""MMEngine's priorities."""

import pytest

from hookloop.engine.hook import Priority as Native
from hookloop_mmengine.runner import Priority, get_priority


def test_the_numbers_are_ours():
    assert {entry.name: entry.value for entry in Priority} == {
        entry.name: int(entry) for entry in Native
    }


@pytest.mark.parametrize(
    ("priority", "number"),
    [
        (0, 0),
        (100, 100),
        (55, 55),
        (True, 1),
        ("NORMAL", 50),
        ("very_low", 90),
        (Priority.HIGH, 30),
    ],
)
def test_a_priority_has_a_number(priority, number):
    assert get_priority(priority) == number


@pytest.mark.parametrize(
    ("priority", "error"),
    [
        (-1, ValueError),
        (101, ValueError),
        ("middle", KeyError),
        (1.5, TypeError),
        (None, TypeError),
    ],
)
def test_others_are_rejected_as_in_mmengine(priority, error):
    with pytest.raises(error):
        get_priority(priority)
