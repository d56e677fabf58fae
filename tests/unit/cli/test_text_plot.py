"""Curves of plain characters."""

import math

from hookloop.cli.search.find_lr import draw_curve


def test_a_curve_fills_its_frame_and_marks_a_place():
    xs = [10**-n for n in range(6, -1, -1)]
    lines = draw_curve(xs, [3.0, 2.5, 2.0, 1.5, 1.0, 2.0, 9.0], mark=1e-3).splitlines()
    assert len(lines) == 16
    assert lines[0].startswith("     9 |")
    assert lines[13].startswith("     1 |")
    assert lines[0].endswith("*")
    assert all("." in line for line in lines[1:12])
    assert lines[-1].split() == ["1e-06", "1"]
    assert "".join(lines).isascii()


def test_values_that_cannot_be_drawn_are_left_out():
    assert draw_curve([1.0, 2.0], [math.nan, math.inf]) == "There is nothing to draw."
    assert draw_curve([], []) == "There is nothing to draw."
    assert draw_curve([1.0, 2.0], [math.nan, 5.0], width=4, height=2).count("*") == 1
    assert "*" in draw_curve([1.0], [2.0])
