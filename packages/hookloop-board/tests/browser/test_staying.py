"""A page that stays open: many tabs, a log that grows, the focus of the keyboard."""

import json

import pytest
from playwright.sync_api import expect

from board_runs import SUMMARY, record, write_run

WAIT = 60_000
HIDE = """
Object.defineProperty(document, "hidden", {configurable: true, get: () => HIDDEN});
document.dispatchEvent(new Event("visibilitychange"));
"""


@pytest.fixture
def run(tmp_path):
    return write_run(tmp_path / "runs" / "a", summary={"status": "unknown"})


def grow(run, iteration):
    with (run / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(record(iteration, **{"train/loss": 1 / iteration})) + "\n")
    summary = {**SUMMARY, "iter": iteration, "metrics": {"train/loss": 1 / iteration}}
    (run / "summary.json").write_text(json.dumps(summary))


def open_part(tab, board, part=""):
    (one,) = tab.request.get(f"{board.origin}/api/runs").json()["runs"]
    tab.goto(f"{board.origin}/#/run/{one['id']}{part}")
    expect(tab.locator("h1")).to_be_visible(timeout=WAIT)


def test_tabs_that_nobody_sees_do_not_keep_others_from_loading(serve, browser, run):
    board = serve()
    context = browser.new_context()
    tabs = []
    for _ in range(9):  # A browser has six connections for all of them.
        tabs.append(context.new_page())
        tabs[-1].goto(board.origin)
        expect(tabs[-1].get_by_test_id("run-row")).to_have_count(1, timeout=WAIT)
        tabs[-1].evaluate(HIDE.replace("HIDDEN", "true"))
    (run / "tags.json").write_text(json.dumps({"tags": ["new"]}))
    tabs[0].evaluate(HIDE.replace("HIDDEN", "false"))
    expect(tabs[0].get_by_test_id("tags")).to_have_value("new", timeout=WAIT)
    context.close()


def test_the_log_goes_on_behind_what_was_loaded(serve, tab, run):
    log = run / "run.log"
    log.write_text("".join(f"line {number:06d}\n" for number in range(8000)))
    open_part(tab, serve(), "/log")
    text = tab.locator(".log")
    expect(text).to_contain_text("line 007999", timeout=WAIT)
    tab.get_by_role("button", name="Load earlier").click()
    expect(text).to_contain_text("line 000001")
    text.evaluate("log => log.scrollTop = log.scrollHeight")
    expect(tab.get_by_label("Follow")).to_be_checked()
    with log.open("a") as file:
        file.write("the last words\n")
    grow(run, 110)
    expect(text).to_contain_text("the last words")
    expect(text).to_contain_text("line 000001")


def test_the_focus_stays_while_a_run_goes_on(serve, tab, run):
    open_part(tab, serve())
    copy = tab.get_by_test_id("copy-command")
    copy.focus()
    grow(run, 120)
    expect(tab.get_by_role("table")).to_contain_text("0.008333")
    expect(copy).to_be_focused()


def test_the_focus_goes_with_the_view(serve, tab, run):
    tab.goto(serve().origin)
    tab.get_by_test_id("run-row").focus()
    tab.keyboard.press("Enter")
    expect(tab.locator("h1")).to_have_text("a")
    expect(tab.get_by_role("main")).to_be_focused()
