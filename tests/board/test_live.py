"""A training while the page is open: it grows, dies, is asked and ends in order."""

import json

from playwright.sync_api import expect

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


def test_a_curve_grows_while_the_run_trains(serve, tab, train, tmp_path):
    train(tmp_path / "runs" / "live")
    board = serve()
    run = wait_for_run(tab, board)
    tab.goto(f"{board.origin}/#/curves?run={run}&metric=train%2Floss")
    curve = tab.locator('[data-testid="curve"][data-metric="train/loss"]')
    expect(curve).to_be_visible(timeout=WAIT)
    before = wait_for_points(tab, 4)
    assert wait_for_points(tab, before + 10) > before


def test_a_killed_run_turns_dead(serve, tab, train, tmp_path):
    process = train(tmp_path / "runs" / "live")
    board = serve()
    wait_for_run(tab, board)
    process.kill()
    process.wait()
    expect(tab.locator('[data-testid="run-row"][data-status="dead"]')).to_have_count(
        1, timeout=WAIT
    )


def test_a_pressed_stop_ends_the_training_in_order(serve, tab, train, tmp_path):
    process = train(tmp_path / "runs" / "live")
    board = serve()
    run = wait_for_run(tab, board)
    tab.goto(f"{board.origin}/#/run/{run}")
    tab.get_by_test_id("ask-stop").click()
    tab.get_by_test_id("ask-confirm").click()
    expect(tab.get_by_test_id("ask-answer")).to_contain_text("Done", timeout=WAIT)
    assert process.wait(60) == 0
    summary = json.loads((tmp_path / "runs" / "live" / "summary.json").read_text())
    assert summary["status"] == "stopped"
    wait_for_run(tab, board, "stopped")


def test_a_run_saves_validates_and_changes_a_value_when_asked(serve, tab, train, tmp_path):
    train(tmp_path / "runs" / "live")
    board = serve()
    run = wait_for_run(tab, board)
    tab.goto(f"{board.origin}/#/run/{run}")
    for deed in ("save", "validate"):
        tab.get_by_test_id(f"ask-{deed}").click()
        tab.get_by_test_id("ask-confirm").click()
        expect(tab.get_by_test_id("ask-answer")).to_contain_text(f"Done: {deed}", timeout=WAIT)
    tab.get_by_test_id("ask-set").click()
    tab.get_by_test_id("ask-key").fill("optimizer.lr")
    tab.get_by_test_id("ask-value").fill("0.001")
    tab.get_by_test_id("ask-confirm").click()
    expect(tab.get_by_test_id("ask-answer")).to_contain_text("Done: set", timeout=WAIT)


def test_two_runs_are_compared(serve, tab, train, tmp_path):
    for name in ("one", "two"):
        assert train(tmp_path / "runs" / name, epochs=4, pause=0).wait(120) == 0
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
