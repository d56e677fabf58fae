"""Curves under the hands: a common zoom, odd values, files that change, pictures."""

import json
import re
import shutil
import struct
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from playwright.sync_api import expect

from board_runs import BEGAN, record, write_run

WAIT = 60_000
METRICS = ("train/loss", "train/accuracy", "val/loss")
PLACES = {
    "iter": lambda i: i,
    "epoch": lambda i: i / 20,
    "samples": lambda i: 8 * i,
    "time": lambda i: BEGAN + i,
    "relative": lambda i: i,
}
"""Where an iteration lies on each axis."""


def has(metric, iteration):
    return metric != "val/loss" or iteration % 20 == 0


def write(path, last=100, **more):
    """A run with two metrics of each iteration, and one of each epoch."""
    records = [
        record(i, **{name: 1 / i for name in METRICS if has(name, i)}) for i in range(1, last + 1)
    ]
    return write_run(path, records, {"metrics": dict.fromkeys(METRICS, 0.1), **more})


@pytest.fixture
def board(serve, tmp_path):
    write(tmp_path / "runs" / "a")
    return serve()


def open_curves(tab, board, more=""):
    tab.goto(f"{board.origin}/#/curves?{more}")
    for metric in METRICS:
        expect(chart(tab, metric)).not_to_have_attribute("data-points", "0", timeout=WAIT)


def chart(tab, metric):
    return tab.locator(f'[data-testid="curve"][data-metric="{metric}"]')


def drag(tab, metric, begin, end):
    """Drag over a chart, between two shares of its width."""
    box = chart(tab, metric).locator(".u-over").bounding_box()
    middle = box["y"] + box["height"] / 2
    tab.mouse.move(box["x"] + begin * box["width"], middle)
    tab.mouse.down()
    tab.mouse.move(box["x"] + end * box["width"], middle, steps=4)
    tab.mouse.up()


def zoomed(tab):
    """The range in the address."""
    query = parse_qs(tab.url.partition("?")[2])
    return float(query["from"][0]), float(query["to"][0])


def expect_range(tab, axis, low, high):
    """Expect that every chart shows the points of a range, and no others."""
    for metric in METRICS:
        found = [i for i in range(1, 101) if has(metric, i) and low <= PLACES[axis](i) <= high]
        expect(chart(tab, metric)).to_have_attribute("data-points", str(len(found)))


@pytest.mark.parametrize("axis", PLACES)
def test_all_charts_are_zoomed_and_moved_together(board, tab, axis):
    open_curves(tab, board)
    tab.get_by_test_id("axis").select_option(axis)
    expect(chart(tab, "train/accuracy")).to_have_attribute("data-axis", axis)
    drag(tab, "train/accuracy", 0.3, 0.8)
    expect(tab).to_have_url(re.compile("from="))
    low, high = zoomed(tab)
    whole = PLACES[axis](100) - PLACES[axis](1)
    assert 0.4 * whole < high - low < 0.6 * whole
    expect_range(tab, axis, low, high)
    tab.keyboard.down("Shift")
    drag(tab, "train/loss", 0.5, 0.7)
    tab.keyboard.up("Shift")
    expect(tab).not_to_have_url(re.compile(f"from={re.escape(f'{low:.12g}')}&"))
    moved = zoomed(tab)
    assert moved[0] < low and moved[1] - moved[0] == pytest.approx(high - low, rel=1e-3)
    expect_range(tab, axis, *moved)
    tab.reload()
    expect_range(tab, axis, *moved)
    chart(tab, "val/loss").locator(".u-over").dblclick()
    expect(tab).not_to_have_url(re.compile("from="))
    expect_range(tab, axis, float("-inf"), float("inf"))


def test_the_keyboard_zooms_moves_and_resets_all_charts(board, tab):
    open_curves(tab, board)
    chart(tab, "train/loss").locator(".plot").focus()
    tab.keyboard.press("+")
    expect(tab).to_have_url(re.compile("from="))
    low, high = zoomed(tab)
    expect_range(tab, "iter", low, high)
    tab.keyboard.press("Shift+ArrowRight")
    expect_range(tab, "iter", low + 0.2 * (high - low), high + 0.2 * (high - low))
    tab.keyboard.press("0")
    expect_range(tab, "iter", 0, 1000)
    expect(tab).not_to_have_url(re.compile("from="))


def test_between_two_points_there_is_still_a_line(board, tab):
    tab.goto(f"{board.origin}/#/curves?from=45&to=55")
    expect(chart(tab, "train/loss")).to_have_attribute("data-points", "11", timeout=WAIT)
    notes = chart(tab, "val/loss").locator(".chart-notes")
    expect(notes).to_have_text("No values in this range.")
    expect(chart(tab, "val/loss").locator(".legend li")).to_have_count(1)


def test_smoothing_does_not_depend_on_the_zoom(board, tab):
    values = set()
    for part in ("", "&from=90&to=100"):
        tab.goto("about:blank")
        with tab.expect_response(re.compile("smooth=")):
            open_curves(tab, board, f"smooth=80{part}")
        values.add(chart(tab, "train/loss").locator(".legend .value").text_content())
    assert len(values) == 1 and "0.01)" in values.pop()  # Behind it, the raw value.


def test_a_log_scale_takes_any_values(serve, tab, tmp_path):
    values = {
        "tiny": lambda i: 10.0 ** -(i % 40),
        "zero": lambda i: 0.0,
        "mixed": lambda i: (-1) ** i / i,
        "odd": lambda i: ("NaN", "Infinity", 1.0)[i % 3],
    }
    records = [record(i, **{name: make(i) for name, make in values.items()}) for i in range(1, 61)]
    write_run(tmp_path / "runs" / "a", records, {"metrics": dict.fromkeys(values, 1.0)})
    tab.goto(f"{serve().origin}/#/curves?log=1&smooth=50")
    for metric, note in (
        ("tiny", ""),
        ("zero", "60 values at or below zero not shown on the log scale."),
        ("mixed", "30 values at or below zero not shown on the log scale."),
        ("odd", "40 values not finite, first Infinity at iteration 1 (\u00d7)."),
    ):
        expect(chart(tab, metric)).to_have_attribute("data-points", "60", timeout=WAIT)
        expect(chart(tab, metric).locator(".chart-notes")).to_have_text(note)


@pytest.mark.parametrize("axis", ["iter", "time"])
def test_a_file_that_is_written_again_is_drawn_again(board, tab, tmp_path, axis):
    open_curves(tab, board, f"axis={axis}")
    path = tmp_path / "runs" / "a" / "metrics.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:50]))  # As a resume from an earlier checkpoint does.
    expect_range(tab, axis, 0, PLACES[axis](50))
    with path.open("a") as file:
        file.writelines(lines[50:])
    expect_range(tab, axis, 0, PLACES[axis](100))


def test_a_clock_that_is_set_back_hides_no_points(board, tab, tmp_path):
    open_curves(tab, board, "axis=time")
    with (tmp_path / "runs" / "a" / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(record(101, **{"train/loss": 0.5}) | {"time": BEGAN + 50.5}) + "\n")
    expect(chart(tab, "train/loss")).to_have_attribute("data-points", "101")


def test_a_run_that_is_deleted_leaves_the_charts(serve, tab, tmp_path):
    for name in "ab":
        write(tmp_path / "runs" / name)
    open_curves(tab, serve())
    legend = chart(tab, "train/loss").locator(".legend li")
    expect(legend).to_have_count(2)
    shutil.rmtree(tmp_path / "runs" / "b")
    expect(tab.get_by_text("1 run is not here any more.")).to_be_visible()
    expect(legend).to_have_count(1)
    expect(legend).to_contain_text("a")


def test_a_picture_has_all_charts_also_those_out_of_sight(serve, tab, tmp_path):
    names = [f"group_{number // 3}/value_{number}" for number in range(60)]
    records = [record(i, **dict.fromkeys(names, 1 / i)) for i in range(1, 11)]
    write_run(tmp_path / "runs" / "a", records, {"metrics": dict.fromkeys(names, 0.1)})
    tab.goto(f"{serve().origin}/#/curves")
    expect(tab.get_by_test_id("curve")).to_have_count(60, timeout=WAIT)
    with tab.expect_download() as download:
        tab.get_by_test_id("export-png").click()
    height = struct.unpack(">I", Path(download.value.path()).read_bytes()[20:24])[0]
    assert height > 20 * 220  # Three beside each other.
