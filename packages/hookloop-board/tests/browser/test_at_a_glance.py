"""What is seen without a click: results before costs, and nothing that hides them."""

import json
import re
from itertools import pairwise

import pytest
from playwright.sync_api import expect

from board_runs import locked, record, write_run

WAIT = 60_000
PHONE = {"width": 390, "height": 844}
TABLET = {"width": 768, "height": 1024}


def losses(*values):
    """A run whose validation loss has these values, one per epoch."""
    records = [record(20 * (i + 1), **{"val/loss": value}) for i, value in enumerate(values)]
    finite = [value for value in values if isinstance(value, int | float)]
    best = {"val/loss": {"value": min(finite), "iter": 20, "epoch": 1}}
    return records, {"metrics": {"val/loss": values[-1]}, "best": best}


def write(path, *values, **more):
    records, summary = losses(*values)
    return write_run(path, records, {**summary, **more})


def chart(tab, metric):
    return tab.locator(f'[data-testid="curve"][data-metric="{metric}"]')


def row(tab, name):
    return tab.get_by_test_id("run-row").filter(has_text=name)


def cell(tab, name, column):
    """The cell of a run below a heading."""
    heads = tab.locator("[data-testid=runs-table] thead th").all_inner_texts()
    titles = [" ".join(one.split()).rstrip("\u25bc\u25b2 ") for one in heads]
    return row(tab, name).locator("td").nth(titles.index(column))


def is_in_sight(place, width):
    box = place.bounding_box()
    return box is not None and box["x"] >= 0 and box["x"] + box["width"] <= width


def test_a_run_that_diverged_does_not_flatten_the_others(serve, tab, tmp_path):
    write(tmp_path / "runs" / "good", 0.9, 0.5, 0.3)
    write(tmp_path / "runs" / "bad", 0.9, 1e9, 1e12)
    tab.goto(f"{serve().origin}/#/curves")
    loss = chart(tab, "val/loss")
    expect(loss).to_have_attribute("data-points", "6", timeout=WAIT)
    expect(loss).to_have_attribute("data-beyond", "2")
    expect(loss.get_by_test_id("beyond")).to_contain_text("bad: 2 points above, up to 1e12")
    loss.get_by_role("button", name="Show all").click()
    expect(loss).to_have_attribute("data-beyond", "0")
    expect(tab.get_by_test_id("all-values")).to_be_checked()
    expect(tab).to_have_url(re.compile("all=1"))
    tab.get_by_test_id("all-values").uncheck()
    expect(loss).to_have_attribute("data-beyond", "2")
    loss.get_by_role("button", name="Log scale").click()
    expect(tab.get_by_test_id("log-scale")).to_be_checked()
    expect(tab).to_have_url(re.compile("log=1"))


def test_a_run_that_had_diverged_before_its_first_value_is_left_out_too(serve, tab, tmp_path):
    write(tmp_path / "runs" / "good", 0.9, 0.5, 0.3)
    write(tmp_path / "runs" / "bad", 7e15, 4e4, 1600)
    tab.goto(f"{serve().origin}/#/curves")
    loss = chart(tab, "val/loss")
    expect(loss).to_have_attribute("data-beyond", "3", timeout=WAIT)
    expect(loss.get_by_test_id("beyond")).to_contain_text("bad: 3 points above, up to 7e15")
    # No frame around all that is there, although the view has the focus.
    tab.locator("main").focus()
    assert tab.locator("main").evaluate("(e) => getComputedStyle(e).outlineStyle") == "none"


@pytest.mark.parametrize("offset", [1_200_000, 123_456_780])
def test_the_axis_has_room_for_its_labels(serve, tab, tmp_path, offset):
    write(tmp_path / "runs" / "a", offset + 10, offset + 20, offset + 30)
    tab.goto(f"{serve().origin}/#/curves")
    expect(chart(tab, "val/loss")).to_have_attribute("data-points", "3", timeout=WAIT)
    plot = chart(tab, "val/loss").locator(".plot").bounding_box()
    over = chart(tab, "val/loss").locator(".u-over").bounding_box()
    assert over["x"] - plot["x"] > 66  # "1.20001M" is wider than the 58 pixels that there were.


def test_times_are_folded_below_the_results(serve, tab, tmp_path):
    values = {"train/loss": 0.5, "train/iter_time": 0.1, "train/fan": 3.0, "device/gpu0/power": 1.0}
    records = [record(i, **values) for i in range(1, 30)]
    write_run(tmp_path / "runs" / "a", records, {"metrics": values, "machine": ["train/fan"]})
    tab.goto(f"{serve().origin}/#/curves")
    expect(chart(tab, "train/loss")).to_have_attribute("data-points", "29", timeout=WAIT)
    folded = [name for name in values if name != "train/loss"]
    for name in folded:
        expect(chart(tab, name)).to_be_hidden()
    tab.get_by_test_id("machine").locator("> summary").click()
    for name in folded:
        expect(chart(tab, name)).to_have_attribute("data-points", "29", timeout=WAIT)


def test_the_table_shows_results_and_how_they_came_about(serve, tab, tmp_path):
    write(tmp_path / "runs" / "good", 0.9, 0.5, 0.3)
    write(tmp_path / "runs" / "middle", 0.9, 0.6, 0.5)
    write(tmp_path / "runs" / "worst", 0.9, 0.8, 0.7)
    write(tmp_path / "runs" / "broken", 0.9, "NaN", "NaN")
    board = serve()
    tab.goto(f"{board.origin}/#/runs")
    spark = row(tab, "good").locator("svg.spark")
    expect(spark).to_have_attribute("data-points", "3", timeout=WAIT)
    expect(spark).to_have_attribute("aria-label", "val/loss, 3 values: from 0.9 to 0.3")
    expect(cell(tab, "good", "val/loss")).to_have_class(re.compile("best"))
    expect(cell(tab, "worst", "val/loss")).to_have_attribute("title", "0.7: number 3 of 3 runs")
    expect(cell(tab, "broken", "val/loss").locator(".wrong")).to_have_text("NaN")
    colours = [
        cell(tab, name, "val/loss").evaluate("(e) => getComputedStyle(e).backgroundColor")
        for name in ("good", "middle", "worst")
    ]
    assert len(set(colours)) == 3
    for title in ("Tags", "Note"):
        expect(tab.get_by_role("columnheader", name=title)).to_have_count(0)
    # What is better comes first, the first time that a column is sorted.
    tab.get_by_role("button", name="val/loss", exact=True).first.click()
    expect(tab.get_by_test_id("run-row").first).to_contain_text("good")
    for size in (PHONE, TABLET):
        tab.set_viewport_size(size)
        tab.reload()
        expect(spark).to_have_attribute("data-points", "3", timeout=WAIT)
        assert is_in_sight(spark, size["width"])
        assert is_in_sight(cell(tab, "good", "val/loss"), size["width"])


def test_columns_without_a_value_are_hidden_until_there_is_one(serve, tab, tmp_path):
    path = write(tmp_path / "runs" / "a", 0.9, 0.5)
    write(tmp_path / "runs" / "b", 0.9, 0.5)
    board = serve()
    tab.goto(f"{board.origin}/#/runs")
    expect(tab.get_by_test_id("run-row")).to_have_count(2, timeout=WAIT)
    notes = tab.get_by_role("columnheader", name="Note")
    expect(notes).to_have_count(0)
    (path / "tags.json").write_text(json.dumps({"tags": [], "note": "first"}))
    expect(notes).to_have_count(1, timeout=WAIT)


def test_the_overview_begins_with_the_main_curve(serve, tab, tmp_path):
    write(tmp_path / "runs" / "a", 0.9, 0.5, 0.3)
    board = serve()
    (run,) = tab.request.get(f"{board.origin}/api/runs").json()["runs"]
    tab.goto(f"{board.origin}/#/run/{run['id']}")
    expect(chart(tab, "val/loss")).to_have_attribute("data-points", "3", timeout=WAIT)
    lines = (tmp_path / "runs" / "a" / "metrics.jsonl").open("a")
    with lines:
        lines.write(json.dumps(record(80, **{"val/loss": 0.2})) + "\n")
    expect(chart(tab, "val/loss")).to_have_attribute("data-points", "4", timeout=WAIT)


def test_a_run_that_lives_is_not_offered_to_resume(serve, tab, tmp_path):
    path = write(tmp_path / "runs" / "a", 0.9, 0.5, status="running")
    one = {"name": "epoch_1.pth", "iter": 20, "epoch": 1}
    (path / "checkpoints.json").write_text(json.dumps({"checkpoints": [one]}))
    board = serve()
    with locked(path):
        (run,) = tab.request.get(f"{board.origin}/api/runs").json()["runs"]
        tab.goto(f"{board.origin}/#/run/{run['id']}")
        expect(tab.locator("main")).to_contain_text("once it has ended", timeout=WAIT)
        expect(tab.locator('[data-command="continue"]')).to_have_count(0)
        tab.goto(f"{board.origin}/#/run/{run['id']}/checkpoints")
        tab.get_by_role("button", name="Commands of").click()
        expect(tab.locator('[data-command="export"]')).to_be_visible()
        expect(tab.locator('[data-command="resume"]')).to_have_count(0)
    (path / "summary.json").write_text((path / "summary.json").read_text() + " ")
    tab.goto(f"{board.origin}/#/run/{run['id']}")
    expect(tab.locator('[data-command="continue"]')).to_be_visible(timeout=WAIT)


def test_a_sweep_is_drawn_as_it_was_searched(serve, tab, tmp_path):
    trials = []
    for number, (rate, value) in enumerate([(0.005518, 1.2), (0.02531, 0.26), (0.08439, 0.44)]):
        write(tmp_path / "runs" / "sweep" / f"trial_{number:04d}", value)
        trials.append(
            {"number": number, "state": "complete", "value": value, "params": {"lr": rate},
             "run": f"trial_{number:04d}"}
        )  # fmt: skip
    about = {"metric": "val/loss", "mode": "min", "space": {"lr": {"is_log": True}}}
    (tmp_path / "runs" / "sweep" / "sweep.json").write_text(json.dumps({**about, "trials": trials}))
    tab.goto(f"{serve().origin}/#/sweeps")
    expect(tab.locator(".scatter figcaption")).to_have_text("val/loss by lr (log)", timeout=WAIT)
    expect(tab.get_by_test_id("colours")).to_have_text(re.compile("worst 1.2.*best 0.26"))
    points = {
        one.get_attribute("data-keep"): one.get_attribute("fill")
        for one in tab.locator(".scatter circle").all()
    }
    bright = re.findall(r"\d+", points["trial/1"]), re.findall(r"\d+", points["trial/0"])
    assert int(bright[0][0]) > int(
        bright[1][0]
    )  # The best is the brightest, though it is the least.


def test_texts_of_a_sweep_lie_on_nothing_else(serve, tab, tmp_path):
    trials = [
        {"number": number, "state": "complete", "value": 1 + number / 7, "params": {"lr": rate}}
        for number, rate in enumerate((1e-4, 3e-4, 2e-3, 8e-3, 7e-2, 0.04, 0.01))
    ]
    write(tmp_path / "runs" / "sweep" / "trial_0000", 1.0)
    about = {"metric": "val/loss", "mode": "min", "space": {"lr": {"is_log": True}}}
    (tmp_path / "runs" / "sweep" / "sweep.json").write_text(json.dumps({**about, "trials": trials}))
    tab.set_viewport_size(PHONE)
    tab.goto(f"{serve().origin}/#/sweeps")
    texts = tab.locator('.scatter svg text[text-anchor="middle"]:not(.axis-name)')
    expect(texts.first).to_be_visible(timeout=WAIT)
    boxes = sorted((one.bounding_box() for one in texts.all()), key=lambda box: box["x"])
    assert len(boxes) > 2
    for left, right in pairwise(boxes):
        assert left["x"] + left["width"] < right["x"]
    # Those of the last axis are on the side without lines, and numbers stand below each other.
    assert tab.locator('.parallel text[text-anchor="start"]').count() > 2
    cells = tab.locator(".sweep tbody tr").first.locator("td")
    assert [one.get_attribute("class") for one in cells.all()][2:] == ["is-number", "is-number"]


def test_hooks_that_cost_next_to_nothing_are_not_coloured(serve, tab, tmp_path):
    path = write(tmp_path / "runs" / "a", 0.9)
    names = {"cheap": 0.004, "dear": 0.4}
    hooks = [{"name": name, "type": "Hook", "reads": [], "writes": []} for name in names]
    cells = [
        {"point": "after_train_iter", "hook": name, "order": 0, "calls": 1, "seconds": seconds}
        for name, seconds in names.items()
    ]
    measured = {"iteration_seconds": 1.0, "iters": 1, "text": "iterations 11 to 30"}
    (path / "hooks.json").write_text(
        json.dumps(
            {"points": ["after_train_iter"], "hooks": hooks, "cells": cells, "measured": measured}
        )
    )
    board = serve()
    (run,) = tab.request.get(f"{board.origin}/api/runs").json()["runs"]
    tab.goto(f"{board.origin}/#/run/{run['id']}/hooks")
    expect(tab.get_by_test_id("hooks-table")).to_be_visible(timeout=WAIT)
    cheap, dear = tab.locator("td.cell").all()
    assert cheap.evaluate("(e) => e.style.getPropertyValue('--heat')") == "0%"
    assert dear.evaluate("(e) => e.style.getPropertyValue('--heat')") > "30%"
