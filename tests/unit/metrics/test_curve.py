from itertools import pairwise

import pytest

from hookloop.hooks.showing.show_progress import Curve


@pytest.mark.parametrize("count", [1, 2, 400, 401, 799, 5000, 20000])
def test_values_are_kept_at_even_distances_with_the_newest(count):
    curve = Curve(length=400)
    for value in range(count):
        curve.add(float(value))
    *kept, newest = curve.values
    assert newest == count - 1
    assert len(curve.values) <= 401
    assert len({second - first for first, second in pairwise(kept)}) <= 1


def test_a_curve_continues_after_a_resume():
    whole, first, second = Curve(8), Curve(8), Curve(8)
    for value in range(100):
        whole.add(value)
        (first if value < 37 else second).add(value)
        if value == 36:
            second.load_state_dict(first.state_dict())
    assert second.values == whole.values


def test_an_empty_curve_has_no_values():
    assert Curve().values == []
