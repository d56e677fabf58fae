"""Fewer points for the same picture."""

import math
from time import process_time

import numpy as np
import pytest

from hookloop_board.sampling import sample, to_list

ALL = (-math.inf, math.inf)


def test_few_points_stay_as_they_are():
    found = sample(np.arange(5.0), np.array([1.0, 2.0, np.nan, 4.0, np.inf]), 10, *ALL)
    assert found.total == 5 and found.low is None
    assert to_list(found.y) == [1.0, 2.0, None, 4.0, None]
    assert [place for place, _ in found.nonfinite] == [2.0, 4.0]


@pytest.mark.parametrize("points", [10, 333, 1200])
def test_the_extremes_of_many_points_are_kept(points):
    y = np.sin(np.arange(100_000.0))
    y[12_345], y[77_777] = 50.0, -60.0
    found = sample(np.arange(100_000.0), y, points, *ALL)
    assert len(found.x) == points and found.total == 100_000
    assert found.high.max() == 50.0 and found.low.min() == -60.0
    assert (found.low <= found.y).all() and (found.y <= found.high).all()
    assert (np.diff(found.x) > 0).all()


def test_only_the_part_between_two_positions_counts():
    found = sample(np.arange(1000.0), np.arange(1000.0), 2000, 10, 19.5)
    assert found.total == 10 and found.x.tolist() == list(range(9, 21))


@pytest.mark.parametrize("weight", [0.3, 0.9, 0.999])
def test_smoothing_is_that_of_the_whole_curve_wherever_one_looks(weight):
    y = np.random.default_rng(0).normal(size=1000)
    y[[5, 500]] = np.nan, np.inf
    total = share = 0.0
    expected = []
    for value in y:
        if np.isfinite(value):
            total, share = weight * total + (1 - weight) * value, weight * share + 1 - weight
        expected.append(total / share if np.isfinite(value) else np.nan)
    x = np.arange(1000.0)
    whole = sample(x, y, 2000, *ALL, weight)
    np.testing.assert_allclose(whole.smooth, expected, rtol=1e-9)
    part = sample(x, y, 2000, 600, 700, weight)
    np.testing.assert_array_equal(part.smooth, whole.smooth[599:702])
    few = sample(x, y, 10, *ALL, weight)
    np.testing.assert_allclose(few.smooth, np.nanmean(np.reshape(expected, (10, 100)), axis=1))
    assert sample(x, y, 10, *ALL).smooth is None


def test_between_two_points_there_is_the_line_that_joins_them():
    x = np.array([10.0, 20.0, 30.0])
    assert sample(x, x, 100, 12, 18).x.tolist() == [10.0, 20.0]
    assert sample(x, x, 100, 12, 18).total == 0
    assert sample(x, x, 100, 40, 50).x.tolist() == [30.0]
    assert sample(x, x, 100, 50, 40).total == sample(x[:0], x[:0], 100, 0, 1).total == 0


def test_points_in_disorder_are_sorted_and_those_without_a_position_left_out():
    found = sample(np.array([3.0, np.nan, 1.0]), np.array([30.0, 20.0, 10.0]), 10, *ALL)
    assert found.x.tolist() == [1.0, 3.0] and found.y.tolist() == [10.0, 30.0]


def test_a_bucket_of_nans_is_a_gap_and_huge_numbers_do_not_overflow():
    y = np.full(1000, 1e308)
    y[:500] = np.nan
    found = sample(np.arange(1000.0), y, 10, *ALL)
    assert to_list(found.y)[:5] == [None] * 5 and to_list(found.y)[9] == 1e308
    assert 0 < len(found.nonfinite) <= 200


def test_a_million_points_take_tens_of_milliseconds():
    x, y = np.arange(1e6), np.random.default_rng(0).normal(size=1_000_000)
    sample(x, y, 1200, *ALL)
    began = process_time()
    for _ in range(5):
        sample(x, y, 1200, *ALL)
    assert (process_time() - began) / 5 < 0.5  # 0.02 on an idle machine.
