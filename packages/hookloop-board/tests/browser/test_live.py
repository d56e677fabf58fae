"""A training while the page is open: it grows, dies, is asked and ends in order."""

import json

from playwright.sync_api import expect

from board_runs import write_run

WAIT = 120_000


def wait_for_run(tab, board, status="running"):
    tab.goto(f"{board.origin}/#/runs")
    row = tab.locator(f'[data-testid="run-row"][data-status="{status}"]')
    expect(row).to_have_count(1, timeout=WAIT)
    return row.first.get_attribute("data-run")


def wait_for_points(tab, least):
    """Wait until a curve has so many points; without eval, which the page forbids."""
    for _ in range(600):
        found = points(tab, "train/loss")
        if found >= least:
            return found
        tab.wait_for_timeout(200)
    raise AssertionError(f"it has {found} points instead of {least}")


def points(tab, metric):
    return int(
        tab.locator(f'[data-testid="curve"][data-metric="{metric}"]').get_attribute("data-points")
    )


def confirm(tab, deed):
    tab.get_by_test_id(f"ask-{deed}").click()
    if deed == "set":
        tab.get_by_test_id("ask-key").fill("optimizer.lr")
        tab.get_by_test_id("ask-value").fill("0.001")
    tab.get_by_test_id("ask-confirm").click()
    expect(tab.get_by_test_id("ask-answer")).to_contain_text(f"Done: {deed}", timeout=WAIT)


def test_a_training_is_watched_asked_and_stopped(serve, tab, train, tmp_path):
    process = train(tmp_path / "runs" / "live")
    board = serve()
    run = wait_for_run(tab, board)
    tab.goto(f"{board.origin}/#/curves?run={run}&metric=train%2Floss")
    curve = tab.locator('[data-testid="curve"][data-metric="train/loss"]')
    expect(curve).to_be_visible(timeout=WAIT)
    before = wait_for_points(tab, 4)
    assert wait_for_points(tab, before + 10) > before
    tab.goto(f"{board.origin}/#/run/{run}")
    for deed in ("save", "validate", "set", "stop"):
        confirm(tab, deed)
    assert process.wait(120) == 0
    summary = json.loads((tmp_path / "runs" / "live" / "summary.json").read_text())
    assert summary["status"] == "stopped" and summary["changes"]
    wait_for_run(tab, board, "stopped")


def test_a_killed_run_turns_dead_while_the_page_is_open(serve, tab, train, tmp_path):
    process = train(tmp_path / "runs" / "live")
    board = serve()
    wait_for_run(tab, board)
    process.kill()
    process.wait()
    dead = tab.locator('[data-testid="run-row"][data-status="dead"]')
    expect(dead).to_have_count(1, timeout=WAIT)


def test_two_runs_are_compared(serve, tab, tmp_path):
    for name in ("one", "two"):
        write_run(tmp_path / "runs" / name)
    board = serve()
    tab.goto(f"{board.origin}/#/runs")
    rows = tab.get_by_test_id("run-row")
    expect(rows).to_have_count(2, timeout=WAIT)
    for number in range(2):
        rows.nth(number).get_by_role("checkbox").check()
    tab.get_by_test_id("compare").click()
    curve = tab.locator('[data-testid="curve"][data-metric="train/loss"]')
    expect(curve).to_be_visible(timeout=WAIT)
    assert tab.url.count("run=") == 2
